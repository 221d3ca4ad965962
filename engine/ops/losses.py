"""Losses that compare element by element: squared, absolute, Huber, binary cross entropy, soft margin.

The formulas are PyTorch's (``aten/src/ATen/native/Loss.cpp``, ``BinaryOps``). Reductions: 0 none, 1 mean, 2 sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import elementwise
from stridescope.engine.dispatch.op import define
from stridescope.engine.dtype import INTEGER, bool_, can_cast, default_float, dtype, promote_types, scalar_name
from stridescope.engine.ops.grad_layouts import like_input, row_major
from stridescope.engine.ops.lookup import op_call, where
from stridescope.engine.ops.reduce import mean_all, sum_all
from stridescope.engine.tensor import Tensor

NAMESPACE = "torch._C._nn"
NONE, MEAN, SUM = 0, 1, 2


def reduced(loss: Tensor, reduction: int) -> Tensor:
    """The elements' losses, their mean or their sum, as ops that autograd sees (``apply_loss_reduction``)."""
    return loss.mean() if reduction == MEAN else loss.sum() if reduction == SUM else loss


def reduced_quietly(loss: Tensor, reduction: int) -> Tensor:
    """The same inside a kernel: no op is recorded."""
    if reduction == NONE:
        return loss
    run = (mean_all if reduction == MEAN else sum_all).run
    assert run is not None
    return run(loss, None)  # type: ignore[no-any-return]


def shared_out(grad: Tensor, reduction: int, count: int) -> Tensor:
    """The incoming gradient as each element's loss gets it."""
    return grad / count if reduction == MEAN else grad


def _paired(
    function: Callable[..., Any], label: str, rest: int, takes: str = "f", through: bool = True
) -> Callable[..., Tensor]:
    """A kernel of prediction and target that ends with a reduction; ``rest`` numbers go to the function."""
    compute = elementwise(function, label, takes, count=2, through=through)

    def run(self: Tensor, target: Tensor, reduction: int, *numbers: Any) -> Tensor:
        return reduced_quietly(compute(self, target, *numbers[:rest]), reduction)

    return run


def _need_own(self: Tensor, kind: dtype) -> None:
    """Refuse a result of a dtype that cannot be written into what has the dtype of ``self``."""
    if not can_cast(kind, self.dtype):
        raise RuntimeError(
            f"result type {scalar_name(kind)} can't be cast to the desired output type {scalar_name(self.dtype)}"
        )


def _symmetric(slope: Callable[..., Tensor]) -> Mapping[str, Callable[..., Tensor]]:
    """The gradients of a loss of the difference: of both arguments, with opposite signs."""

    def one(grad: Tensor, self: Tensor, other: Tensor, reduction: int) -> Tensor:
        return row_major(shared_out(grad, reduction, self.numel()) * slope(self - other))

    return {
        "self": lambda grad, self, target, reduction: one(grad, self, target, reduction),
        "target": lambda grad, target, self, reduction: one(grad, target, self, reduction),
    }


define(
    "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    doc="The squared difference.",
    run=_paired(lambda a, b: (d := a - b) * d, "mse_cpu", 0),
    grads=_symmetric(lambda difference: difference * 2),
    samples=[((3, 4), (3, 4))],
    method=False,
    namespace=NAMESPACE,
)


def _l1(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return reduced((self - target).abs(), reduction)


define(
    "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    doc="The absolute difference.",
    composite=_l1,
    samples=[((3, 4), (3, 4))],
    method=False,
    namespace=NAMESPACE,
)


def _smooth_l1(a: Any, b: Any, beta: float) -> Any:
    size = np.abs(a - b)
    number = size.dtype.type
    return np.where(size < number(beta), number(0.5) * size * size / number(beta or 1), size - number(0.5 * beta))


def _smooth_l1_slope(difference: Tensor, beta: float) -> Any:
    flat = difference.sign()
    return where(difference.abs() < beta, difference / beta, flat) if beta else flat


def _smooth_l1_grad(grad: Tensor, self: Tensor, target: Tensor, reduction: int, beta: float) -> Any:
    return row_major(shared_out(grad, reduction, self.numel()) * _smooth_l1_slope(self - target, beta))


smooth_l1_kernel = _paired(_smooth_l1, "smooth_l1_cpu", 1)
l1_kernel = _paired(lambda a, b: np.abs(a - b), "abs_cpu", 0)


def _run_smooth_l1(self: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return smooth_l1_kernel(self, target, reduction, beta) if beta else l1_kernel(self, target, reduction)


define(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor",
    doc="Squared for small differences, absolute for large ones.",
    run=_run_smooth_l1,
    grads={
        "self": lambda grad, self, target, reduction, beta: _smooth_l1_grad(grad, self, target, reduction, beta),
        "target": lambda grad, target, self, reduction, beta: _smooth_l1_grad(grad, target, self, reduction, beta),
    },
    samples=[((3, 4), (3, 4))],
    method=False,
    namespace=NAMESPACE,
)


def _huber(a: Any, b: Any, delta: float) -> Any:
    size = np.abs(a - b)
    number = size.dtype.type
    return np.where(size < number(delta), number(0.5) * size * size, number(delta) * (size - number(0.5 * delta)))


def _huber_slope(difference: Tensor, delta: float) -> Any:
    return where(difference.abs() < delta, difference, difference.sign() * delta)


def _huber_grad(grad: Tensor, self: Tensor, target: Tensor, reduction: int, delta: float) -> Any:
    return row_major(shared_out(grad, reduction, self.numel()) * _huber_slope(self - target, delta))


huber_kernel = _paired(_huber, "huber_cpu", 1)


def _run_huber(self: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if self.dtype is not target.dtype:
        _need_own(self, promote_types(self.dtype, target.dtype))
        return huber_kernel(self, target, reduction, delta).to(self.dtype)  # type: ignore[no-any-return]
    return huber_kernel(self, target, reduction, delta)


define(
    "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor",
    doc="Squared for small differences, linear for large ones.",
    run=_run_huber,
    grads={
        "self": lambda grad, self, target, reduction, delta: _huber_grad(grad, self, target, reduction, delta),
        "target": lambda grad, target, self, reduction, delta: _huber_grad(grad, target, self, reduction, delta),
    },
    samples=[((3, 4), (3, 4))],
    method=False,
    namespace=NAMESPACE,
)


def _soft_margin(a: Any, b: Any) -> Any:
    return np.log1p(np.exp(-b * a))


soft_margin_kernel = _paired(_soft_margin, "exp_vml_cpu", 0, "fc", through=False)


def _run_soft_margin(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    """Minus the target is written first, then exponentials in place: all has the dtype of ``self``."""
    if self.dtype is bool_:
        self.neg()  # which is refused
    _need_own(self, target.dtype)
    _need_own(self, default_float() if self.dtype.category <= INTEGER else self.dtype)
    return soft_margin_kernel(self, target if target.dtype is self.dtype else target.to(self.dtype), reduction)


def _soft_margin_grad(grad: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    decay = (-target * self).exp()
    return -target * decay / (decay + 1) * shared_out(grad, reduction, self.numel())  # type: ignore[no-any-return]


define(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    doc="The logistic loss of a prediction and a target of 1 or -1.",
    run=_run_soft_margin,
    grads={"self": _soft_margin_grad},
    samples=[((3, 4), (3, 4))],
    method=False,
    namespace=NAMESPACE,
)

# ---- binary cross entropy ------------------------------------------------------------------------------------------


def _bce_elements(a: Any, b: Any) -> Any:
    if a.size and not ((a >= 0) & (a <= 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")
    low = a.dtype.type(-100)
    return (b - 1) * np.maximum(np.log1p(-a), low) - b * np.maximum(np.log(a), low)


_bce_kernel = elementwise(_bce_elements, "binary_cross_entropy", "f")
_times = elementwise(np.multiply, "mul_cpu", "f")


def _run_bce(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    if self.dtype is not target.dtype:
        raise RuntimeError(f"Found dtype {scalar_name(target.dtype)} but expected {scalar_name(self.dtype)}")
    return reduced_quietly(_weighted(_bce_kernel(self, target), weight), reduction)


def _weighted(loss: Tensor, weight: Tensor | None) -> Tensor:
    """The loss times the weight; one of another dtype is multiplied in place."""
    if weight is None or weight.dtype is loss.dtype:
        return loss if weight is None else _times(loss, weight)
    return loss.mul_(weight)  # type: ignore[no-any-return]


def _bce_grad(grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Any:
    result = grad * (self - target) / ((1 - self) * self).clamp_min(1e-12)
    result = result if weight is None else result * weight
    return like_input(shared_out(result, reduction, self.numel()), self)


def _bce_target_grad(grad: Tensor, self: Tensor, weight: Tensor | None, reduction: int) -> Any:
    result = -op_call("logit")(self) * grad
    result = result if weight is None else result * weight
    return shared_out(result, reduction, self.numel())


define(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    doc="The cross entropy of a probability and a target between 0 and 1.",
    run=_run_bce,
    grads={"self": _bce_grad, "target": _bce_target_grad},
    method=False,
    namespace=NAMESPACE,
)


def _log_sigmoid(a: Any) -> Any:
    return np.minimum(a, 0) - np.log1p(np.exp(-np.abs(a)))


_logits_kernel = elementwise(lambda a, b: (1 - b) * a - _log_sigmoid(a), "log_sigmoid_cpu", "f")
_weighted_logits = elementwise(
    lambda a, b, w: (1 - b) * a - _log_sigmoid(a) * ((w - 1) * b + 1), "log_sigmoid_cpu", "f"
)


def _run_logits(
    self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Tensor:
    if target.dtype is not self.dtype or (pos_weight is not None and pos_weight.dtype is not self.dtype):
        loss = _mixed_logits(self, target, pos_weight)
    else:
        loss = _logits_kernel(self, target) if pos_weight is None else _weighted_logits(self, target, pos_weight)
    return reduced_quietly(_weighted(loss, weight), reduction)


def _mixed_logits(self: Tensor, target: Tensor, pos_weight: Tensor | None) -> Tensor:
    """The loss of several dtypes, as PyTorch computes it: most is done in place, in the dtype of the target."""
    log_sigmoid = op_call("log_sigmoid")
    factor = None if pos_weight is None else (pos_weight - 1).mul(target).add_(1)
    found = log_sigmoid(self)
    loss = (target.new_full((), 1) - target).mul_(self)
    return loss.sub_(found if factor is None else factor.mul_(found))  # type: ignore[no-any-return]


def _logits_grad(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Any:
    if pos_weight is None:
        result = (self.sigmoid() - target) * grad
    else:
        positive = pos_weight * target
        result = ((positive + 1 - target) * self.sigmoid() - positive) * grad
    result = result if weight is None else result * weight
    return shared_out(result, reduction, self.numel())


def _logits_target_grad(
    grad: Tensor, self: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Any:
    if pos_weight is None:
        result = -self * grad
    else:
        log_sigmoid = op_call("log_sigmoid")
        result = (log_sigmoid(-self) - log_sigmoid(self) * pos_weight) * grad
    result = result if weight is None else result * weight
    return shared_out(result, reduction, self.numel())


define(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=1) -> Tensor",
    doc="The cross entropy of a prediction before its sigmoid and a target between 0 and 1.",
    run=_run_logits,
    grads={"self": _logits_grad, "target": _logits_target_grad},
    samples=[((3, 4), (3, 4))],
    method=False,
)


def _kl_div(self: Tensor, target: Tensor, reduction: int, *, log_target: bool) -> Any:
    if self.dtype.is_complex or target.dtype.is_complex:
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if not (self.dtype.is_floating_point and target.dtype.is_floating_point):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        apart = target - self  # C++ computes the right operand first
        return reduced(target.exp() * apart, reduction)
    product = target * self
    return reduced(op_call("xlogy.Tensor")(target, target) - product, reduction)


define(
    "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
    doc="The Kullback-Leibler divergence of log probabilities from target probabilities.",
    composite=_kl_div,
    method=False,
)
