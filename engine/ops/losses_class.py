"""Losses against class numbers: nll_loss, its 2-d form, and cross_entropy with its label forms."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.one_device import one_device
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import FLOATS, resolved
from stridescope.engine.dtype import dtype, int64, scalar_name, uint8
from stridescope.engine.ops.arithmetic import add_scalar, mul_scalar
from stridescope.engine.ops.division import div_scalar
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.losses import MEAN, NONE, SUM
from stridescope.engine.ops.reduce import added, widened
from stridescope.engine.ops.softmax import log_softmax
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh

NAMESPACE = "torch._C._nn"


def _check_weight(weight: Tensor | None, classes: int) -> None:
    if weight is not None and not (weight.dim() == 1 and weight.numel() == classes):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )


def _check_kinds(self: Tensor, target: Tensor, weight: Tensor | None, label: str) -> None:
    if target.dtype not in (int64, uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_name(target.dtype)}")
    if not self.dtype.is_floating_point:
        raise not_implemented(label, self.dtype)
    if weight is not None and weight.dtype is not self.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(self.dtype)} but found {scalar_name(weight.dtype)}")


def _check_1d(self: Tensor, target: Tensor, weight: Tensor | None) -> None:
    shape, given = self._array.shape, target._array.shape
    if len(shape) not in (1, 2):
        raise RuntimeError("input tensor should be 1D or 2D")
    if len(given) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if (len(shape) > 1 or given) and shape[:1] != given:
        raise RuntimeError(f"size mismatch (got input: {list(shape)}, target: {list(given)})")
    _check_weight(weight, shape[-1])


def _check_2d(self: Tensor, target: Tensor, weight: Tensor | None) -> None:
    if target.dim() != 3:
        raise RuntimeError("only batches of spatial targets supported (3D tensors) but got targets of dimension: "
                           f"{target.dim()}")  # fmt: skip
    if self.dim() != 4:
        raise RuntimeError(f"only batches of spatial inputs supported (4D tensors), but got input of dimension: "
                           f"{self.dim()}")  # fmt: skip
    if weight is not None and weight.numel() != self.shape[1]:
        raise RuntimeError("weight tensor should be defined either for all or no classes")
    if self.shape[0] != target.shape[0] or self.shape[2:] != target.shape[1:]:
        raise RuntimeError(f"size mismatch (got input: {list(self.shape)} , target: {list(target.shape)}")


def _weights(target: Array, weight: Tensor | None, ignored: Array, classes: int, kind: Any) -> tuple[Array, Array]:
    """The class numbers with ignored ones as 0, and what each element counts."""
    bad = ~ignored & ((target < 0) | (target >= classes))
    if bad.any():
        raise IndexError(f"Target {target[bad].flat[0]} is out of bounds.")
    safe = np.where(ignored, 0, target).astype(np.int64)
    if weight is None:
        return safe, np.where(ignored, kind.type(0), kind.type(1))
    return safe, np.where(ignored, kind.type(0), resolved(weight)[safe])


def _picked(array: Array, classes: Array) -> Array:
    """Each element's value at its class; classes stand in dim 1, or alone."""
    if array.ndim == 1:
        return np.asarray(array[classes.reshape(())])
    return np.take_along_axis(array, classes[:, None], 1)[:, 0]


def _in_rows(array: Array, numbers: Array, weight: Tensor | None, ignored: int) -> Array | None:
    """Where each row's class stands in memory, when that is all there is to it: nothing is weighed or ignored."""
    if weight is not None or array.ndim != 2 or numbers.ndim != 1 or not array.size or numbers.itemsize != 8:
        return None
    rows, classes = array.shape
    if 0 <= ignored < classes or not array.flags.c_contiguous:
        return None
    unsigned = numbers.view(np.uint64)  # the negative ones are large
    if unsigned.item(unsigned.argmax()) >= classes:
        return None
    return _row_starts(rows, classes) + numbers


@functools.lru_cache(256)
def _row_starts(rows: int, classes: int) -> Array:
    return np.arange(0, rows * classes, classes)


def _nll(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    if self._plain and self.dtype in FLOATS and target._plain and reduction != NONE:
        found = _usual(self, target, weight, reduction, ignore_index)
        if found is not None:
            return found
    array, numbers = widened(resolved(self), self.dtype), resolved(target)
    if array.ndim == 1 and numbers.ndim == 1:
        numbers = numbers.reshape(())
    where = one_device((self, target, weight))
    counts: Any
    places = _in_rows(array, numbers, weight, ignore_index)
    if places is not None:
        losses, counts = -array.take(places), array.dtype.type(len(places))
    else:
        losses, counts = _weighted_losses(array, numbers, weight, ignore_index)
    if reduction == NONE:
        return _made(losses, self.dtype, where), _made(np.zeros((), array.dtype), self.dtype, where)
    over = tuple(range(losses.ndim))
    total, weights = added(losses, over), counts if places is not None else added(counts, over)
    if reduction == MEAN:
        total = np.divide(total, weights)
    return _made(total, self.dtype, where), _made(weights, self.dtype, where)


def _usual(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor] | None:
    """The loss and the count of its terms, the short way: of a row of floats on the CPU per class number; else None."""
    array, kind = self._array, self.dtype
    places = _in_rows(array, target._array, weight, ignore_index)
    if places is None:
        return None
    losses = array.take(places)
    total, count = added(np.negative(losses, losses), (0,)), kind.np.type(len(places))
    if reduction == MEAN:
        total = np.asarray(total / count)
    return fresh(total, kind), fresh(np.asarray(count), kind)


def _weighted_losses(array: Array, numbers: Array, weight: Tensor | None, ignore_index: int) -> tuple[Array, Array]:
    """Each element's loss, and what it counts."""
    ignored = numbers == ignore_index
    classes, counts = _weights(numbers, weight, ignored, array.shape[-1 if array.ndim == 1 else 1], array.dtype)
    if not array.size:
        return -counts, counts
    return np.where(ignored, array.dtype.type(0), -_picked(array, classes) * counts), counts


def _made(array: Any, kind: dtype, where: Any) -> Tensor:
    return fresh(dense(np.asarray(array, kind.np)), kind, where)


def _run_nll(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> Any:
    _check_1d(self, target, weight)
    _check_kinds(self, target, weight, "nll_loss_out_frame")
    return _nll(self, target, weight, reduction, ignore_index)


def _run_nll2d(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> Any:
    _check_2d(self, target, weight)
    _check_kinds(self, target, weight, "nll_loss2d_forward_out_frame")
    return _nll(self, target, weight, reduction, ignore_index)


def _run_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    numbers = resolved(target)
    if self.dim() == 1 and numbers.ndim == 1:
        numbers = numbers.reshape(())
    result = np.zeros(self._array.shape, self.dtype.np)
    if not result.size:
        return fresh(result, self.dtype, self.device)
    share = resolved(grad_output)
    if reduction == MEAN:
        share = share / resolved(total_weight)
    places = _in_rows(result, numbers, weight, ignore_index)
    if places is not None:
        result.reshape(-1)[places] = -share
        return fresh(result, self.dtype, self.device)
    ignored = numbers == ignore_index
    axis = 0 if self.dim() == 1 else 1
    classes, counts = _weights(numbers, weight, ignored, self._array.shape[axis], np.dtype(self.dtype.np))
    values = np.where(ignored, 0, -counts * share).astype(result.dtype)
    if axis == 0:
        result[classes.reshape(())] = values
    else:
        np.put_along_axis(result, classes[:, None], values[:, None], 1)
    return fresh(result, self.dtype, self.device)


def _define_backward(name: str) -> Any:
    def again(
        grad: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int, total_weight: Tensor
    ) -> Any:
        picked = op_call(name.removesuffix("_backward") + "_forward")(grad, target, weight, reduction, ignore_index)[0]
        return picked

    return define(
        f"{name}(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, "
        "Tensor total_weight) -> Tensor",
        doc="The gradient of the loss: minus the weight at each element's class.",
        run=_run_backward,
        grads={"grad_output": again, "self": lambda self: zeros_like(self)},
        method=False,
        function=False,
    )


_backward, _backward2d = _define_backward("nll_loss_backward"), _define_backward("nll_loss2d_backward")


def _gradient(op: Any) -> Any:
    def formula(
        grad: Tensor,
        self: Tensor,
        target: Tensor,
        weight: Tensor | None,
        reduction: int,
        ignore_index: int,
        total_weight: Tensor,
    ) -> Tensor:
        return op.call(grad, self, target, weight, reduction, ignore_index, total_weight)  # type: ignore[no-any-return]

    return formula


def _define_forward(name: str, node: str, run: Any, backward: Any, samples: list[Any]) -> Any:
    forward = define(
        f"{name}_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> "
        "(Tensor output, Tensor total_weight)",
        doc="Minus the log probability of each element's class, and the sum of the weights.",
        run=run,
        grads={"self": _gradient(backward)},
        node=node,
        differentiable_outputs=(0,),
        method=False,
        function=False,
    )
    define(
        f"{name}(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
        doc="Minus the log probability of each element's class.",
        composite=lambda self, target, weight=None, reduction=MEAN, ignore_index=-100: forward.call(
            self, target, weight, reduction, ignore_index
        )[0],
        samples=samples,
        method=False,
        namespace=NAMESPACE,
    )
    return forward


nll_forward = _define_forward("nll_loss", "NllLossBackward0", _run_nll, _backward, [])
nll2d_forward = _define_forward("nll_loss2d", "NllLoss2DBackward0", _run_nll2d, _backward2d, [])


def _nll_nd(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> Any:
    shape = self._array.shape
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) != 1 and shape[0] != (target._array.shape or (None,))[0]:
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({target.shape[0]}).")
    if len(shape) <= 2:
        return nll_forward.call(self, target, weight, reduction, ignore_index)[0]
    if len(shape) == 4:
        return nll2d_forward.call(self, target, weight, reduction, ignore_index)[0]
    wanted = (shape[0], *shape[2:])
    if target._array.shape[1:] != shape[2:]:
        raise RuntimeError(f"Expected target size {list(wanted)}, got {list(target.shape)}")
    rest = (1, -1) if self.numel() else (0, 0)
    flat = self.contiguous().view((*shape[:2], *rest))
    numbers = target.contiguous().view((shape[0], *rest))
    out = nll2d_forward.call(flat, numbers, weight, reduction, ignore_index)[0]
    return out.view(wanted) if reduction == NONE else out


define(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
    doc="Minus the log probability of each element's class, for any number of dims.",
    composite=_nll_nd,
    method=False,
    namespace=NAMESPACE,
)


def _with_probabilities(input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, smoothing: float) -> Any:
    axis = 0 if input.dim() == 1 else 1
    classes = input.shape[axis]
    if weight is not None and not (weight.dim() == 1 and weight.numel() == classes):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got "
            f"weight tensor of shape: {list(weight.shape)}"
        )
    logs = input.log_softmax(axis, input.dtype)
    if smoothing > 0:
        target = add_scalar.call(mul_scalar.call(target, 1 - smoothing), smoothing / classes, 1)
    product = logs * target
    if weight is not None:
        product = product * (weight if input.dim() == 1 else weight.view((1, -1, *(1,) * (input.dim() - 2))))
    if reduction == NONE:
        return -product.sum(axis)
    if reduction == SUM:
        return -product.sum()
    if not input.numel():
        return (-product.sum()).fill_(float("nan"))
    return div_scalar.call(-product.sum(), input.numel() // classes)


def _smoothed(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, smoothing: float
) -> Any:
    axis = 0 if input.dim() == 1 else 1
    logs = input.log_softmax(axis, input.dtype)
    hard = _nll_nd(logs, target, weight, reduction, ignore_index)
    if weight is None:
        smooth = -logs.sum(axis)
    else:
        shape = [1] * input.dim()
        shape[axis] = weight.shape[0]
        smooth = -(logs * weight.view(tuple(shape))).sum(axis)
    ignored = target == ignore_index
    smooth.masked_fill_(ignored, 0.0)
    if reduction == SUM:
        smooth = smooth.sum()
    elif reduction == MEAN and weight is not None:
        kept = target.masked_select(ignored.logical_not()).flatten()
        smooth = smooth.sum() / weight.gather(0, kept).sum()
    elif reduction == MEAN:
        smooth = smooth.sum() / ignored.logical_not().sum()
    return mul_scalar.call(hard, 1 - smoothing) + mul_scalar.call(smooth, smoothing / logs.shape[axis])


def _cross_entropy(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, label_smoothing: float
) -> Any:
    if self._array.shape == target._array.shape and self._array.ndim:
        if not target.dtype.is_floating_point:
            raise RuntimeError("Expected floating point type for target with class probabilities, got "
                               + scalar_name(target.dtype))  # fmt: skip
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _with_probabilities(self, target, weight, reduction, label_smoothing)
    if label_smoothing > 0:
        if label_smoothing > 1:
            raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
        return _smoothed(self, target, weight, reduction, ignore_index, label_smoothing)
    axis = 0 if self._array.ndim == 1 else 1
    return _nll_nd(log_softmax.call(self, axis, self.dtype), target, weight, reduction, ignore_index)


define(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, "
    "float label_smoothing=0.0) -> Tensor",
    doc="The cross entropy of predictions before their softmax and class numbers or probabilities.",
    composite=_cross_entropy,
    method=False,
    namespace=NAMESPACE,
)
