"""Derivative formulas that PyTorch has as one op: under ``create_graph`` they are one node, not one for each step.

``tanh_backward(grad, result)`` is such an op; its node is ``TanhBackwardBackward0``. The formula itself stays what it
is, a few Tensor ops, and so is its own derivative: the node runs it again with a graph and differentiates that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.edges import gradient_edge
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.node import NO_EDGE, Gradients, Node, set_history
from stridescope.engine.autograd.saved import SavedTensor
from stridescope.engine.tensor import Tensor


class OneNode(Node):
    """The node of a formula that counts as one op."""

    __slots__ = ("args", "function")

    def keep(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Remember the formula and what it was given."""
        self.function = function
        self.args = [SavedTensor(a) if isinstance(a, Tensor) else a for a in args]

    def _run(self, gradients: Gradients) -> Gradients:
        """The derivative as PyTorch writes it, where it is known; else the formula, run again and differentiated."""
        written = DOUBLE.get(type(self).__name__)
        if written is None or gradients[0] is None:
            return self._differentiated(gradients)
        before, grad_mode.formula = grad_mode.formula, grad_mode.enabled
        try:
            args = [a.unpack(self) for a in self.args]
            return written(as_one_node(FORWARD[type(self).__name__], self.function), gradients[0], *args)
        finally:
            grad_mode.formula = before

    def _differentiated(self, gradients: Gradients) -> Gradients:
        """Run the formula again, and differentiate it by the tensors it was given."""
        from stridescope.engine.autograd.api import grad

        args = [a.unpack(self) if isinstance(a, SavedTensor) else a for a in self.args]
        tensors = [a for a in args if isinstance(a, Tensor)]
        create = grad_mode.enabled
        if not create:
            fresh = iter([t.detach().requires_grad_(t._requires_grad) for t in tensors])
            args = [next(fresh) if isinstance(a, Tensor) else a for a in args]
            tensors = [a for a in args if isinstance(a, Tensor)]
        results = _recorded(self.function, args)
        pairs = [(r, g) for r, g in zip(results, gradients, strict=True) if g is not None and r._requires_grad]
        sources = [t for t in tensors if t._requires_grad]
        if not pairs:
            return (None,) * len(tensors)
        outs, starts = zip(*pairs, strict=True)
        found = iter(grad(outs, sources, starts, create_graph=create, allow_unused=True))
        return tuple(next(found) if t._requires_grad else None for t in tensors)

    def _release(self) -> None:
        """Free what was saved for backward."""
        for kept in self.args:
            if isinstance(kept, SavedTensor):
                kept.release()


def _recorded(function: Callable[..., Any], args: list[Any]) -> list[Any]:
    before, grad_mode.enabled = grad_mode.enabled, True
    try:
        return _tensors(function(*args))
    finally:
        grad_mode.enabled = before


def _tensors(results: Any) -> list[Any]:
    return [r for r in (results if isinstance(results, (tuple, list)) else (results,)) if isinstance(r, Tensor)]


# The nodes whose gradient formula is one op in PyTorch, and the name of that op's own node.
NAMES = {
    "BinaryCrossEntropyBackward0": "BinaryCrossEntropyBackwardBackward0",
    "EluBackward0": "EluBackwardBackward0",
    "EluBackward1": "EluBackwardBackward0",
    "GeluBackward0": "GeluBackwardBackward0",
    "GluBackward0": "GluBackwardBackward0",
    "HardshrinkBackward0": "HardshrinkBackwardBackward0",
    "HardswishBackward0": "HardswishBackwardBackward0",
    "HardswishBackward1": "HardswishBackwardBackward0",
    "HardtanhBackward0": "HardtanhBackwardBackward0",
    "HardtanhBackward1": "HardtanhBackwardBackward0",
    "HuberLossBackward0": "HuberLossBackwardBackward0",
    "LeakyReluBackward0": "LeakyReluBackwardBackward0",
    "LeakyReluBackward1": "LeakyReluBackwardBackward0",
    "LogSigmoidBackward0": "LogSigmoidBackwardBackward0",
    "LogSoftmaxBackward0": "LogSoftmaxBackwardDataBackward0",
    "MseLossBackward0": "MseLossBackwardBackward0",
    "PreluKernelBackward0": "PreluKernelBackwardBackward0",
    "ReluBackward0": "ThresholdBackwardBackward0",
    "SigmoidBackward0": "SigmoidBackwardBackward0",
    "SmoothL1LossBackward0": "SmoothL1LossBackwardBackward0",
    "SoftmaxBackward0": "SoftmaxBackwardDataBackward0",
    "SoftplusBackward0": "SoftplusBackwardBackward0",
    "SoftshrinkBackward0": "SoftshrinkBackwardBackward0",
    "TanhBackward0": "TanhBackwardBackward0",
    "ThresholdBackward0": "ThresholdBackwardBackward0",
    "ThresholdBackward1": "ThresholdBackwardBackward0",
}
KINDS = {name: type(name, (OneNode,), {"__slots__": (), "__module__": "builtins"}) for name in set(NAMES.values())}


# Formulas whose own derivative does not exist: what is said when it is asked for.
REFUSED: dict[str, tuple[type[Exception], str]] = {
    **{
        name: (RuntimeError, f"derivative for aten::{op} is not implemented")
        for name, op in (
            ("CtcLossBackward0", "_ctc_loss_backward"),
            ("HardsigmoidBackward0", "hardsigmoid_backward"),
            ("HardsigmoidBackward1", "hardsigmoid_backward"),
            ("MultiMarginLossBackward0", "multi_margin_loss_backward"),
            ("MultilabelMarginLossBackward0", "multilabel_margin_loss_backward"),
            ("ScaledDotProductFlashAttentionForCpuBackward0", "_scaled_dot_product_flash_attention_for_cpu_backward"),
            ("SegmentReduceBackward0", "_segment_reduce_backward"),
        )
    },
    "PdistBackward0": (NotImplementedError, "the derivative for '_pdist_backward' is not implemented."),
    "GridSampler2DBackward0": (NotImplementedError, "grid_sampler_2d's second derivative is not in Stridescope yet"),
    "GridSampler3DBackward0": (NotImplementedError, "grid_sampler_3d's second derivative is not in Stridescope yet"),
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
            node = Refusal(tuple(gradient_edge(t) if t._requires_grad else NO_EDGE for t in tensors))
            node.reason = REFUSED[name]
            set_history(node, _tensors(results))
        return results

    return run


FORWARD = {second: first for first, second in NAMES.items()}


def _tanh(again: Callable[..., Any], grad: Any, grad_output: Any, output: Any) -> Gradients:
    return again(grad, output), grad * (output * -2 * grad_output)


def _sigmoid(again: Callable[..., Any], grad: Any, grad_output: Any, output: Any) -> Gradients:
    slope = output * -2 + 1  # C++ computes the right operand first
    return again(grad, output), grad * grad_output * slope


# Derivatives of such ops as PyTorch writes them, so that third derivatives have its nodes, too: ``again`` is the op.
DOUBLE: dict[str, Callable[..., Gradients]] = {"TanhBackwardBackward0": _tanh, "SigmoidBackwardBackward0": _sigmoid}


def as_one_node(name: str, formula: Callable[..., Any]) -> Callable[..., Any]:
    """The formula of the node ``name``, or, where PyTorch has it as one op, the same under one node when recorded."""
    if name in REFUSED:
        return _refusing(name, formula)
    if name not in NAMES:
        return formula
    kind = KINDS[NAMES[name]]

    def run(*args: Any) -> Any:
        if not grad_mode.formula or not any(isinstance(a, Tensor) and a._requires_grad for a in args):
            return formula(*args)
        before, grad_mode.enabled = grad_mode.enabled, False
        try:
            results = formula(*args)
        finally:
            grad_mode.enabled = before
        tensors = [a for a in args if isinstance(a, Tensor)]
        node = kind(tuple(gradient_edge(t) if t._requires_grad else NO_EDGE for t in tensors))
        set_history(node, [r for r in _tensors(results) if r.dtype.is_floating_point or r.dtype.is_complex])
        node.keep(formula, args)
        return results

    return run
