"""Reductions: many elements become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import cast, one_device, resolved
from stridescope.engine.dtype import dtype, int64
from stridescope.engine.layout import wrap_dim, wrap_dims
from stridescope.engine.tensor import Tensor, dense, fresh


def axes(dims: Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The dims a reduction runs over; none given means all."""
    return tuple(range(ndim)) if not dims and dims != 0 else wrap_dims(dims, ndim) if ndim else _scalar_axes(dims)


def _scalar_axes(dims: Sequence[int]) -> tuple[int, ...]:
    for dim in dims:
        wrap_dim(dim, 0)
    return ()


def restored(grad: Tensor, sizes: Sequence[int], dims: Sequence[int] | None, keepdim: bool) -> Tensor:
    """The gradient of a reduced result, stretched over the reduced dims again (``sum_backward``)."""
    if not keepdim and sizes:
        for dim in sorted(axes(dims, len(sizes))):
            grad = grad.unsqueeze(dim)
    result: Tensor = grad.expand(tuple(sizes))
    return result


def summed(tensor: Tensor, dims: Sequence[int] | None, keepdim: bool, kind: dtype | None) -> Tensor:
    """``sum``: integers and bools add up in int64, half precisions in float32."""
    target = kind or (int64 if tensor.dtype.category < 2 else tensor.dtype)
    array = resolved(tensor) if tensor.dtype is target else cast(resolved(tensor), target)
    through = np.float32 if target.itemsize == 2 and target.is_floating_point else None
    total = np.add.reduce(array, axes(dims, array.ndim), dtype=through, keepdims=keepdim)
    return fresh(dense(np.asarray(total, dtype=target.np)), target, one_device((tensor,)))


sum_all = define(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    doc="Adds up all elements.",
    run=lambda self, dtype: summed(self, None, False, dtype),
    node="SumBackward0",
    grads={"self": lambda grad, self_sym_sizes: grad.expand(self_sym_sizes)},
    samples=[((3, 4),)],
)

sum_dim = define(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    doc="Adds up the elements along some dims.",
    run=summed,
    node="SumBackward1",
    grads={"self": lambda grad, self_sym_sizes, dim, keepdim: restored(grad, self_sym_sizes, dim, keepdim)},
    samples=[((3, 4), (1,)), ((3, 4), (0,), True)],
)


def _mean(tensor: Tensor, dims: Sequence[int] | None, keepdim: bool, kind: dtype | None) -> Tensor:
    target = kind or tensor.dtype
    if target.category < 2:
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {_title(tensor.dtype)}"
        )
    array = cast(resolved(tensor), target)
    through = np.float32 if target.itemsize == 2 else None
    over = axes(dims, array.ndim)
    count = int(np.prod([array.shape[d] for d in over])) if over else 1
    with np.errstate(all="ignore"):
        total = np.asarray(np.add.reduce(array, over, dtype=through, keepdims=keepdim))
        total = np.asarray(total / total.dtype.type(count))
    return fresh(dense(total.astype(target.np)), target, one_device((tensor,)))


def _title(kind: dtype) -> str:
    from stridescope.engine.dtype import scalar_name

    return scalar_name(kind)


def _count(sizes: Sequence[int], dims: Sequence[int] | None) -> int:
    return int(np.prod([sizes[d] for d in axes(dims, len(sizes))])) if sizes else 1


mean_all = define(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    doc="The average of all elements.",
    run=lambda self, dtype: _mean(self, None, False, dtype),
    node="MeanBackward0",
    grads={"self": lambda grad, self_sym_sizes, self_sym_numel: grad.expand(self_sym_sizes) / self_sym_numel},
    samples=[((3, 4),)],
)

mean_dim = define(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    doc="The average along some dims.",
    run=_mean,
    node="MeanBackward1",
    grads={
        "self": lambda grad, self_sym_sizes, dim, keepdim: (
            restored(grad, self_sym_sizes, dim, keepdim) / _count(self_sym_sizes, dim)
        )
    },
    samples=[((3, 4), (1,))],
)


def _sum_to_size(self: Tensor, size: Sequence[int]) -> Tensor:
    shape = self._array.shape
    extra = len(shape) - len(size)
    leading = tuple(range(extra))
    ones = tuple(d + extra for d, n in enumerate(size) if n == 1 and shape[d + extra] != 1)
    result: Any = self
    if ones or leading:
        result = self.sum(leading + ones, True)
    return result.view(tuple(size)) if leading else result  # type: ignore[no-any-return]


sum_to_size = define(
    "sum_to_size(Tensor self, SymInt[] size) -> Tensor",
    doc="Adds up broadcast dims until the shape is size.",
    composite=_sum_to_size,
    samples=[((3, 4), (1, 4))],
    function=False,
)
