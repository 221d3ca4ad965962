"""The strides of pointwise results: those that TensorIterator would choose for the operands."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.layout import (
    channels_last_strides,
    contiguous_strides,
    dense_strides_like,
    is_channels_last,
    is_contiguous,
    is_non_overlapping_and_dense,
    iterator_order,
    iterator_strides,
)
from stridescope.engine.storage import Array

Ints = tuple[int, ...]


def output_strides(shape: tuple[int, ...], arrays: Sequence[Any]) -> tuple[int, ...]:
    """The strides, in elements, that TensorIterator gives a pointwise result of these operands.

    A number among them is a 0-d operand: it repeats over the shape, which rules the short cuts out.
    """
    tensors = [a for a in arrays if isinstance(a, np.ndarray)]
    element = [tuple(s // a.itemsize for s in a.strides) for a in tensors]
    alike = len(tensors) == len(arrays) or not shape
    if alike and all(a.shape == shape for a in tensors):
        if all(a.flags.c_contiguous for a in tensors):
            return contiguous_strides(shape)
        fast = _fast_strides(shape, element)
        if fast is not None:
            return fast
    spread = [_spread(a.shape, strides, shape) for a, strides in zip(tensors, element, strict=True)]
    if not spread:
        return contiguous_strides(shape)
    return iterator_strides(shape, iterator_order([shape], spread))


@functools.lru_cache(4096)
def _settled(shape: Ints, a_shape: Ints, a_strides: Ints, b_shape: Ints, b_strides: Ints) -> Ints:
    """:func:`output_strides` of two operands in these layouts, in elements; the same ones come again and again."""
    return output_strides(shape, [blank(a_shape, a_strides), blank(b_shape, b_strides)])


def settled(result: Array, a: Array, b: Array) -> Array | None:
    """NumPy's result of two operands in PyTorch's strides; None where its elements would lie in another order."""
    item = a.itemsize
    own, other = tuple([s // item for s in a.strides]), tuple([s // item for s in b.strides])
    wanted = tuple([s * result.itemsize for s in _settled(result.shape, a.shape, own, b.shape, other)])
    if result.strides == wanted:
        return result
    for size, stride, want in zip(result.shape, result.strides, wanted, strict=True):
        if size != 1 and stride != want:
            return None
    return np.ndarray(result.shape, result.dtype, result, 0, wanted) if result.flags.c_contiguous else None


def tensor_strides(shape: tuple[int, ...], sources: Sequence[Any]) -> tuple[int, ...]:
    """The strides of an op whose numbers are settings of its kernel, not operands (``clamp``, ``pow``)."""
    return output_strides(shape, [s for s in sources if isinstance(s, np.ndarray)])


def like_strides(shape: tuple[int, ...], sources: Sequence[Any]) -> tuple[int, ...]:
    """The strides of an op that makes its result with ``empty_like`` of the first operand."""
    first = sources[0]
    return dense_strides_like(shape, tuple(s // first.itemsize for s in first.strides))


def row_major(shape: tuple[int, ...], sources: Sequence[Any]) -> tuple[int, ...]:
    """The strides of an op whose result is contiguous whatever its operands are."""
    return contiguous_strides(shape)


def _fast_strides(shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    if all(is_contiguous(shape, s) for s in strides):
        return contiguous_strides(shape)
    first = strides[0]
    if len(shape) == 4 and all(is_channels_last(shape, s) for s in strides):
        return channels_last_strides(shape)
    if all(s == first for s in strides) and is_non_overlapping_and_dense(shape, first):
        return first
    return None


def _spread(shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an operand broadcast to ``target``: 0 where it repeats."""
    extra = len(target) - len(shape)
    own = tuple(0 if n == 1 and t != 1 else s for n, s, t in zip(shape, strides, target[extra:], strict=True))
    return (0,) * extra + own


def blank(shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """An array of bools in these strides (in elements) whose values nobody looks at."""
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0
    return np.ndarray(shape, np.bool_, np.empty(extent, np.bool_) if extent else bytearray(), 0, strides)
