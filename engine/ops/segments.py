"""Reductions over segments of a dim, and hashes of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, uint64
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops.reduce import axes, wrapped
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor

# What a segment starts with when no initial value is given.
STARTS = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}


def _bounds(lengths: Tensor | None, offsets: Tensor | None, dim: int, size: int, unsafe: bool) -> Array:
    """Where each segment begins and, behind the last, where it ends."""
    if offsets is not None:
        return offsets._array
    if lengths is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    array = lengths._array
    if not unsafe:
        if array.size and array.min() < 0:
            raise RuntimeError("lengths contains negative value!")
        if np.any(array.sum(-1) != size):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
    zeros = np.zeros((*array.shape[:-1], 1), array.dtype)
    return np.concatenate([zeros, np.cumsum(array, -1)], -1)


def _one_segment(part: Array, reduce: str, initial: float | None) -> Array:
    start = STARTS[reduce] if initial is None else initial
    if not len(part):
        return np.full(part.shape[1:], np.nan if reduce == "mean" and initial is None else start, part.dtype)
    if reduce in ("sum", "mean"):
        total = np.add.reduce(part, 0) + part.dtype.type(start)
        return total / part.dtype.type(len(part)) if reduce == "mean" else total  # type: ignore[no-any-return]
    ufunc = {"prod": np.multiply, "max": np.maximum, "min": np.minimum}[reduce]
    return ufunc(ufunc.reduce(part, 0), part.dtype.type(start))  # type: ignore[no-any-return]


def _segment_reduce(
    data: Tensor, reduce: str, lengths: Tensor | None, indices: Tensor | None, offsets: Tensor | None, axis: int,
    unsafe: bool, initial: Any,
) -> Tensor:  # fmt: skip
    if reduce not in STARTS:
        raise RuntimeError(f"unsupported reduction: {reduce}")
    if data.dtype.category != FLOAT:
        raise not_implemented("_segment_reduce_cpu", data.dtype)
    array = resolved(data)
    axis = wrap_dim(axis, array.ndim)
    bounds = _bounds(lengths, offsets, axis, array.shape[axis], unsafe)
    result = np.empty((*bounds.shape[:-1], bounds.shape[-1] - 1, *array.shape[axis + 1 :]), array.dtype)
    for place in np.ndindex(*bounds.shape[:-1]):
        own, rows = bounds[place], array[place]
        for k in range(len(own) - 1):
            result[(*place, k)] = _one_segment(rows[own[k] : own[k + 1]], reduce, initial)
    return wrapped(result, data.dtype, data)


def _segment_grad(
    grad: Tensor, result: Tensor, data: Tensor, reduce: str, lengths: Any, offsets: Any, axis: int, initial: Any
) -> Tensor:
    """Each element gets its share of its segment's gradient."""
    axis = wrap_dim(axis, data._array.ndim)
    bounds = _bounds(lengths, offsets, axis, data.shape[axis], True)
    slope, whole = resolved(grad), np.zeros(data.shape, data.dtype.np)
    values, found = resolved(data), resolved(result)
    for place in np.ndindex(*bounds.shape[:-1]):
        own = bounds[place]
        for k in range(len(own) - 1):
            rows = slice(own[k], own[k + 1])
            whole[place][rows] = _share(slope[(*place, k)], found[(*place, k)], values[place][rows], reduce, initial)
    return wrapped(whole, data.dtype, data)


def _share(slope: Array, found: Array, part: Array, reduce: str, initial: Any) -> Array:
    if reduce == "sum" or not len(part):
        return np.broadcast_to(slope, part.shape)
    if reduce == "mean":
        return np.broadcast_to(slope / part.dtype.type(len(part)), part.shape)
    if reduce == "prod":
        start = part.dtype.type(1 if initial is None else initial)
        others = [np.multiply.reduce(np.delete(part, i, 0), 0) * start for i in range(len(part))]
        return slope * np.stack(others)  # type: ignore[no-any-return]
    chosen = (part == found) | np.isnan(part)
    return chosen * (slope / np.maximum(chosen.sum(0), 1).astype(part.dtype))  # type: ignore[no-any-return]


define(
    "_segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, "
    "int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    doc="Reduces runs of a dim, each to one element.",
    run=_segment_reduce,
    grads={
        "data": lambda grad, result, data, reduce, lengths, offsets, axis, initial: _segment_grad(
            grad, result, data, reduce, lengths, offsets, axis, initial
        )
    },
    method=False,
)


def _hash(self: Tensor, dim: Sequence[int], keepdim: bool, mode: int) -> Tensor:
    """The exclusive or of the bits; floating-point numbers count as float64."""
    array = resolved(self)
    if not array.size and not dim:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    if self.dtype.is_complex:
        raise not_implemented("xor_sum_cpu", self.dtype)
    wide = array.astype(np.float64 if self.dtype.category == FLOAT else np.int64).view(np.uint64)
    over = axes(dim, array.ndim)
    bits: Any = np.bitwise_xor
    return wrapped(bits.reduce(wide, over, keepdims=keepdim), uint64, self)


define(
    "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    doc="A number that changes when an element does.",
    run=_hash,
)
