"""Derivative formulas that PyTorch has as one op: under ``create_graph`` they are one node, not one for each step.

``tanh_backward(grad, result)`` is such an op; its node is ``TanhBackwardBackward0``. The formula itself stays what it
is, a few Tensor ops, and so is its own derivative: the node runs it again with a graph and differentiates that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.autograd.edges import gradient_edge
from stridescope.engine.autograd.leaf import leaf_at
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.node import Gradients, Node, set_history
from stridescope.engine.autograd.saved import SavedTensor
from stridescope.engine.tensor import Tensor


class OneOp(NamedTuple):
    """A derivative formula that is an op of its own: the name of its node, and what that has edges to, in order."""

    node: str
    edges: tuple[str, ...]


class OneNode(Node):
    """The node of a formula that counts as one op."""

    __slots__ = ("args", "function", "places")

    def keep(self, function: Callable[..., Any], args: tuple[Any, ...], places: tuple[int, ...]) -> None:
        """Remember the formula, what it was given, and at which places of that the edges' tensors are.

        A place below zero is that of an edge without a gradient, counted from the end.
        """
        self.function, self.places = function, places
        self.args = [SavedTensor(a) if isinstance(a, Tensor) else a for a in args]

    def _run(self, gradients: Gradients) -> Gradients:
        """The derivative as PyTorch writes it, where it is known; else the formula, run again and differentiated."""
        written = DOUBLE.get(type(self).__name__)
        if written is None or gradients[0] is None:
            return self._differentiated(gradients)
        before, grad_mode.formula = grad_mode.formula, grad_mode.enabled
        try:
            args = [a.unpack(self) for a in self.args]
            return written(_under_one_node(KINDS[type(self).__name__], self.places, self.function), gradients[0], *args)
        finally:
            grad_mode.formula = before

    def _differentiated(self, gradients: Gradients) -> Gradients:
        """Run the formula again on aliases of what it was given, and differentiate it by those.

        Aliases, for what arrives through another argument's own history is that argument's.
        """
        from stridescope.engine.autograd.api import grad

        create = grad_mode.enabled
        args = [a.unpack(self) if isinstance(a, SavedTensor) else a for a in self.args]
        wanted = [p for p in self.places if p >= 0 and isinstance(args[p], Tensor) and args[p]._requires_grad]
        args = _recorded(lambda *given: [_alias(a, i in wanted, create) for i, a in enumerate(given)], args)
        results = _listed(_recorded(self.function, args))
        pairs = [(r, g) for r, g in zip(results, gradients, strict=True) if g is not None and r._requires_grad]
        sources = [args[place] for place in wanted]
        found = [None] * len(sources)
        if pairs and sources:
            outs, starts = zip(*pairs, strict=True)
            found = grad(outs, sources, starts, create_graph=create, allow_unused=True)
        by_place = {p: zeros_like(s) if g is None else g for p, s, g in zip(wanted, sources, found, strict=True)}
        return tuple(by_place.get(place) for place in self.places)

    def _release(self) -> None:
        """Free what was saved for backward."""
        for kept in self.args:
            if isinstance(kept, SavedTensor):
                kept.release()


def _alias(value: Any, wanted: bool, tracked: bool) -> Any:
    if not isinstance(value, Tensor):
        return value
    if not wanted:
        return value.detach()
    return value.view_as(value) if tracked else leaf_at(value)


def _recorded(function: Callable[..., Any], args: list[Any]) -> Any:
    before, grad_mode.enabled = grad_mode.enabled, True
    try:
        return function(*args)
    finally:
        grad_mode.enabled = before


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


_SELF = ("grad", "self")
_RESULT = ("grad", "result")
_PAIR, _SWAPPED = ("grad", "self", "target"), ("grad", "target", "self")
_NORM = ("grad", "input", "weight", "result1", "result2")
_LAYER_NORM = ("grad", "input", "result1", "result2", "weight", "-bias")  # the minus: an edge without a gradient

# The derivative formulas that are one op in PyTorch: by their node and the inputs that they are for.
ONE_OPS: dict[tuple[str, str], OneOp] = {
    ("BinaryCrossEntropyBackward0", "self"): OneOp("BinaryCrossEntropyBackwardBackward0", _PAIR),
    ("CeluBackward0", "self"): OneOp("EluBackwardBackward0", _SELF),
    ("EluBackward0", "self"): OneOp("EluBackwardBackward0", _SELF),
    ("EluBackward1", "self"): OneOp("EluBackwardBackward0", _RESULT),
    ("GeluBackward0", "self"): OneOp("GeluBackwardBackward0", _SELF),
    ("GluBackward0", "self"): OneOp("GluBackwardBackward0", _SELF),
    ("HardshrinkBackward0", "self"): OneOp("HardshrinkBackwardBackward0", _SELF),
    ("HardswishBackward0", "self"): OneOp("HardswishBackwardBackward0", _SELF),
    ("HardswishBackward1", "self"): OneOp("HardswishBackwardBackward0", _SELF),
    ("HardtanhBackward0", "self"): OneOp("HardtanhBackwardBackward0", _SELF),
    ("HardtanhBackward1", "self"): OneOp("HardtanhBackwardBackward0", _RESULT),
    ("HuberLossBackward0", "self"): OneOp("HuberLossBackwardBackward0", _PAIR),
    ("HuberLossBackward0", "target"): OneOp("HuberLossBackwardBackward0", _SWAPPED),
    ("LeakyReluBackward0", "self"): OneOp("LeakyReluBackwardBackward0", _SELF),
    ("LeakyReluBackward1", "self"): OneOp("LeakyReluBackwardBackward0", _RESULT),
    ("LogSigmoidBackward0", "self"): OneOp("LogSigmoidBackwardBackward0", _SELF),
    ("LogSoftmaxBackward0", "self"): OneOp("LogSoftmaxBackwardDataBackward0", _RESULT),
    ("MseLossBackward0", "self"): OneOp("MseLossBackwardBackward0", _PAIR),
    ("MseLossBackward0", "target"): OneOp("MseLossBackwardBackward0", _SWAPPED),
    ("NativeBatchNormBackward0", "input,weight,bias"): OneOp("NativeBatchNormBackwardBackward0", _NORM),
    ("NativeBatchNormLegitBackward0", "input,weight,bias"): OneOp("NativeBatchNormBackwardBackward0", _NORM),
    ("NativeBatchNormLegitBackward1", "input,weight,bias"): OneOp("NativeBatchNormBackwardBackward0", _NORM),
    ("NativeLayerNormBackward0", "input,weight,bias"): OneOp("NativeLayerNormBackwardBackward0", _LAYER_NORM),
    ("PreluKernelBackward0", "self,weight"): OneOp("PreluKernelBackwardBackward0", (*_SELF, "weight")),
    ("ReluBackward0", "self"): OneOp("ThresholdBackwardBackward0", _RESULT),
    ("RreluWithNoiseBackward0", "self"): OneOp("RreluWithNoiseBackwardBackward0", _SELF),
    ("SafeSoftmaxBackward0", "self"): OneOp("SoftmaxBackwardDataBackward0", _RESULT),
    ("SigmoidBackward0", "self"): OneOp("SigmoidBackwardBackward0", _RESULT),
    ("SmoothL1LossBackward0", "self"): OneOp("SmoothL1LossBackwardBackward0", _PAIR),
    ("SmoothL1LossBackward0", "target"): OneOp("SmoothL1LossBackwardBackward0", _SWAPPED),
    ("SoftMarginLossBackward0", "self"): OneOp("SoftMarginLossBackwardBackward0", _SELF),
    ("SoftmaxBackward0", "self"): OneOp("SoftmaxBackwardDataBackward0", _RESULT),
    ("SoftplusBackward0", "self"): OneOp("SoftplusBackwardBackward0", _SELF),
    ("SoftshrinkBackward0", "self"): OneOp("SoftshrinkBackwardBackward0", _SELF),
    ("TanhBackward0", "self"): OneOp("TanhBackwardBackward0", _RESULT),
    ("ThresholdBackward0", "self"): OneOp("ThresholdBackwardBackward0", _SELF),
    ("ThresholdBackward1", "self"): OneOp("ThresholdBackwardBackward0", _SELF),
}
KINDS = {
    name: type(name, (OneNode,), {"__slots__": (), "__module__": "builtins"})
    for name in dict.fromkeys(one.node for one in ONE_OPS.values())
}


# Formulas whose own derivative does not exist: what is said when it is asked for. The key is the node's name, with the
# input where another input's formula has one.
REFUSED: dict[str, tuple[type[Exception], str]] = {
    name: (RuntimeError, f"derivative for aten::{op} is not implemented")
    for name, op in (
        ("CtcLossBackward0", "_ctc_loss_backward"),
        ("EmbeddingBagBackward0.per_sample_weights", "_embedding_bag_per_sample_weights_backward"),
        ("HardsigmoidBackward0", "hardsigmoid_backward"),
        ("HardsigmoidBackward1", "hardsigmoid_backward"),
        ("MultiMarginLossBackward0", "multi_margin_loss_backward"),
        ("MultilabelMarginLossBackward0", "multilabel_margin_loss_backward"),
        ("ScaledDotProductFlashAttentionForCpuBackward0", "_scaled_dot_product_flash_attention_for_cpu_backward"),
        ("SegmentReduceBackward0", "_segment_reduce_backward"),
    )
}


class Refusal(Node):
    """A node that stands for a derivative that does not exist."""

    __slots__ = ("reason",)
    reason: tuple[type[Exception], str]
    shown_name = "torch::autograd::NotImplemented"

    def _run(self, gradients: Gradients) -> Gradients:
        """Always raises."""
        kind, text = self.reason
        raise kind(text)


Refusal.__name__ = Refusal.__qualname__ = "NotImplemented"
Refusal.__module__ = "builtins"


def _refusing(name: str, formula: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        results = formula(*args)
        tensors = [a for a in args if isinstance(a, Tensor)]
        if grad_mode.formula and any(t._requires_grad for t in tensors):
            node = Refusal(tuple(gradient_edge(t) for t in tensors if t._requires_grad))
            node.reason = REFUSED[name]
            set_history(node, [r for r in _listed(results) if isinstance(r, Tensor)])
        return results

    return run


def _tanh(again: Callable[..., Any], grad: Any, grad_output: Any, output: Any) -> Gradients:
    return again(grad, output.conj()), grad.conj() * (output.conj() * -2 * grad_output)


def _sigmoid(again: Callable[..., Any], grad: Any, grad_output: Any, output: Any) -> Gradients:
    slope = output.conj() * -2 + 1  # C++ computes the right operand first
    return again(grad, output.conj()), grad.conj() * grad_output * slope


# Derivatives of such ops as PyTorch writes them, so that third derivatives have its nodes, too: ``again`` is the op.
DOUBLE: dict[str, Callable[..., Gradients]] = {"TanhBackwardBackward0": _tanh, "SigmoidBackwardBackward0": _sigmoid}


def as_one_node(name: str, inputs: tuple[str, ...], formula: Callable[..., Any]) -> Callable[..., Any]:
    """The formula of the node ``name``, or, where PyTorch has it as one op, the same under one node when recorded."""
    for refused in (name, f"{name}.{','.join(inputs)}"):
        if refused in REFUSED:
            return _showing(name, inputs, formula, _refusing(refused, formula))
    one = ONE_OPS.get((name, ",".join(inputs)))
    if one is None:
        return _showing(name, inputs, formula, formula)
    recorded = _under_one_node(KINDS[one.node], _places(formula, one.edges), formula)
    return _showing(name, inputs, formula, recorded)


def _showing(
    name: str, inputs: tuple[str, ...], formula: Callable[..., Any], recorded: Callable[..., Any]
) -> Callable[..., Any]:
    """``recorded``, shown to what may take an op's place."""
    code = formula.__code__
    names, key = code.co_varnames[: code.co_argcount], ",".join(inputs)

    def run(*args: Any) -> Any:
        if grad_mode.shown is None:
            return recorded(*args)
        return grad_mode.shown.formula(name, key, dict(zip(names, args, strict=True)), lambda: recorded(*args))

    return run


def _places(formula: Callable[..., Any], edges: tuple[str, ...]) -> tuple[int, ...]:
    code = formula.__code__
    names = code.co_varnames[: code.co_argcount]
    return tuple(names.index(e) if e[0] != "-" else names.index(e[1:]) - len(names) for e in edges)


def _under_one_node(kind: type[OneNode], places: tuple[int, ...], formula: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        sources = [args[place] for place in places]
        if not grad_mode.formula or not any(isinstance(a, Tensor) and a._requires_grad for a in sources):
            return formula(*args)
        before, grad_mode.enabled = grad_mode.enabled, False
        try:
            results = formula(*args)
        finally:
            grad_mode.enabled = before
        node = kind(tuple(gradient_edge(a) for a in sources))
        set_history(node, _listed(results))
        node.keep(formula, args, places)
        return results

    return run
