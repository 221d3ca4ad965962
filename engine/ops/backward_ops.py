"""Ops that PyTorch has for derivatives of others, such as ``threshold_backward``: what formulas call by these names.

Each is the formula that the op whose derivative it is declares.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.one_node import as_one_node
from stridescope.engine.dispatch.op import DECLARED, define


class Backward(NamedTuple):
    """How a formula is an op.

    Attributes:
        schema: the op.
        node: the node whose formula it is, as a class name, and the inputs that it is for.
        values: for each argument of the op, what the formula calls it, ``1/`` and that, or ``=`` and a constant.
    """

    schema: str
    node: tuple[str, str]
    values: tuple[str, ...]

    @property
    def name(self) -> str:
        """The op's name."""
        return self.schema.partition("(")[0]

    def given(self, values: Mapping[str, Any]) -> list[Any]:
        """The op's arguments, of what the formula is given by its own names."""
        return [_CONSTANTS[v] if v in _CONSTANTS else 1 / values[v[2:]] if v.startswith("1/") else values[v]
                for v in self.values]  # fmt: skip

    def fits(self, given: Sequence[Any]) -> bool:
        """Whether the formula is for such arguments."""
        return all(_CONSTANTS.get(v, one) is one for v, one in zip(self.values, given, strict=True))


_CONSTANTS = {"=0": 0, "=1": 1, "=True": True, "=False": False}


def _of(schema: str, node: str, values: str, inputs: str = "self") -> Backward:
    return Backward(schema, (node, inputs), tuple(values.split()))


_LOSS = "Tensor grad_output, Tensor self, Tensor target, int reduction"
_SLOPE = "Tensor grad_output, Tensor self"
_ELU = ("elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
        "Tensor self_or_result) -> Tensor")  # fmt: skip
_LEAKY = f"leaky_relu_backward({_SLOPE}, Scalar negative_slope, bool self_is_result) -> Tensor"
_HARDTANH = f"hardtanh_backward({_SLOPE}, Scalar min_val, Scalar max_val) -> Tensor"
_THRESHOLD = f"threshold_backward({_SLOPE}, Scalar threshold) -> Tensor"
_BCE = "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor"  # noqa: E501

# The first of a name is the one that is declared; others are further formulas that come to the same op.
BACKWARDS = (
    _of(_THRESHOLD, "ThresholdBackward0", "grad self threshold"),
    _of(_THRESHOLD, "ThresholdBackward1", "grad self threshold"),
    _of(_THRESHOLD, "ReluBackward0", "grad result =0"),
    _of(f"gelu_backward({_SLOPE}, *, str approximate='none') -> Tensor", "GeluBackward0", "grad self approximate"),
    _of(f"silu_backward({_SLOPE}) -> Tensor", "SiluBackward0", "grad self"),
    _of(f"mish_backward({_SLOPE}) -> Tensor", "MishBackward0", "grad self"),
    _of(_ELU, "EluBackward0", "grad alpha scale input_scale =False self"),
    _of(_ELU, "EluBackward1", "grad alpha scale input_scale =True result"),
    _of(_ELU, "CeluBackward0", "grad alpha =1 1/alpha =False self"),
    _of(_LEAKY, "LeakyReluBackward0", "grad self negative_slope =False"),
    _of(_LEAKY, "LeakyReluBackward1", "grad result negative_slope =True"),
    _of(_HARDTANH, "HardtanhBackward0", "grad self min_val max_val"),
    _of(_HARDTANH, "HardtanhBackward1", "grad result min_val max_val"),
    _of(f"hardswish_backward({_SLOPE}) -> Tensor", "HardswishBackward0", "grad self"),
    _of(f"hardsigmoid_backward({_SLOPE}) -> Tensor", "HardsigmoidBackward0", "grad self"),
    _of("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor", "HardshrinkBackward0",
        "grad self lambd"),
    _of(f"softshrink_backward({_SLOPE}, Scalar lambd) -> Tensor", "SoftshrinkBackward0", "grad self lambd"),
    _of(f"softplus_backward({_SLOPE}, Scalar beta, Scalar threshold) -> Tensor", "SoftplusBackward0",
        "grad self beta threshold"),
    _of("sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", "SigmoidBackward0", "grad result"),
    _of("tanh_backward(Tensor grad_output, Tensor output) -> Tensor", "TanhBackward0", "grad result"),
    _of(f"glu_backward({_SLOPE}, int dim) -> Tensor", "GluBackward0", "grad self dim"),
    _of(f"log_sigmoid_backward({_SLOPE}, Tensor buffer) -> Tensor", "LogSigmoidBackward0", "grad self buffer"),
    _of(f"logit_backward({_SLOPE}, float? eps=None) -> Tensor", "LogitBackward0", "grad self eps"),
    _of(f"_prelu_kernel_backward({_SLOPE}, Tensor weight) -> (Tensor, Tensor)", "PreluKernelBackward0",
        "grad self weight", "self,weight"),
    _of(f"mse_loss_backward({_LOSS}) -> Tensor", "MseLossBackward0", "grad self target reduction"),
    _of(f"mse_loss_backward({_LOSS}) -> Tensor", "MseLossBackward0", "grad target self reduction", "target"),
    _of(f"huber_loss_backward({_LOSS}, float delta) -> Tensor", "HuberLossBackward0",
        "grad self target reduction delta"),
    _of(f"huber_loss_backward({_LOSS}, float delta) -> Tensor", "HuberLossBackward0",
        "grad target self reduction delta", "target"),
    _of(f"smooth_l1_loss_backward({_LOSS}, float beta) -> Tensor", "SmoothL1LossBackward0",
        "grad self target reduction beta"),
    _of(f"smooth_l1_loss_backward({_LOSS}, float beta) -> Tensor", "SmoothL1LossBackward0",
        "grad target self reduction beta", "target"),
    _of(f"soft_margin_loss_backward({_LOSS}) -> Tensor", "SoftMarginLossBackward0", "grad self target reduction"),
    _of(_BCE, "BinaryCrossEntropyBackward0", "grad self target weight reduction"),
    _of("multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, "
        "Tensor? weight=None, int reduction=1) -> Tensor", "MultiMarginLossBackward0",
        "grad self target p margin weight reduction"),
    _of(f"multilabel_margin_loss_backward({_LOSS}, Tensor is_target) -> Tensor", "MultilabelMarginLossBackward0",
        "grad self target reduction is_target"),
)  # fmt: skip
BY_NODE = {backward.node: backward for backward in BACKWARDS}


@functools.cache
def _formula(node: tuple[str, str]) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """The formula that a node runs, under one node when it is recorded, and the names of what it takes."""
    for op in DECLARED:
        if op.derivative is not None and op.derivative.name == node[0]:
            for formula in op.derivative.formulas:
                if ",".join(formula.inputs) == node[1]:
                    return as_one_node(node[0], formula.inputs, formula.function), formula.wants
    raise LookupError(f"no op declares the formula of {node}")


def _run(name: str, *given: Any) -> Any:
    backward = next(each for each in BACKWARDS if each.name == name and each.fits(given))
    formula, wants = _formula(backward.node)
    values = dict(zip(backward.values, given, strict=True))
    before, grad_mode.formula = grad_mode.formula, grad_mode.enabled
    try:
        return formula(*(values[want] for want in wants))
    finally:
        grad_mode.formula = before


for _backward in {each.name: each for each in reversed(BACKWARDS)}.values():
    define(
        _backward.schema,
        doc=f"The derivative that {_backward.node[0]} computes.",
        composite=functools.partial(_run, _backward.name),
        function=False,
        method=False,
    )
define(
    "lift_fresh(Tensor(a) self) -> Tensor(a)",
    doc="The tensor itself, which was made from Python's data.",
    composite=lambda self: self,
    function=False,
    method=False,
)
define(
    "_local_scalar_dense(Tensor self) -> Scalar",
    doc="The only element as a number.",
    composite=lambda self: self.item(),
    function=False,
    method=False,
)
