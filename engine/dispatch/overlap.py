"""Refusing in-place writes whose result would depend on the order of writing (``aten/src/ATen/MemoryOverlap.cpp``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.layout import is_non_overlapping_and_dense
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, strided
from stridescope.engine.warn import internal, warn

# Ops whose in-place form reads nothing that it writes, not even the same element.
APART = frozenset(("index_add", "index_copy", "index_reduce", "put", "scatter", "scatter_add", "scatter_reduce"))
PARTIAL = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)


def is_expanded(target: Tensor) -> bool:
    """Whether a dim of stride 0 makes several elements of ``target`` one memory location."""
    array = target._array
    return (
        0 in array.strides
        and array.size != 0
        and any(s == 0 and n > 1 for n, s in zip(array.shape, array.strides, strict=True))
    )


# What warn_of_expanded says of masked_fill_, which index_put_ comes to for one value under masks.
MASKED_FILL = ("masked_fill_", "tensor[mask] = scalar", 2450)


def warn_of_expanded(target: Tensor, name: str, example: str, line: int) -> None:
    """Warn before an op that PyTorch still lets write into an expanded tensor; ``line`` is where it does so."""
    if is_expanded(target):
        warn(
            internal(
                f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
                f"operation. This also applies to advanced indexing e.g. {example}",
                f"aten/src/ATen/native/TensorAdvancedIndexing.cpp:{line}",
            )
        )


def refuse_internal_overlap(target: Tensor) -> None:
    """Raise RuntimeError when ``target`` is expanded."""
    if is_expanded(target):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def refuse_partial_overlap(target: Tensor, source: Tensor) -> None:
    """Raise RuntimeError when ``source`` reads some, but not just the same, elements that ``target`` writes."""
    if target is source or target._storage is None or source._storage is not target._storage:
        return
    sizes, strides, start = target.layout_
    other = source.layout_
    if not target._array.size or not source._array.size:
        return
    if not (is_non_overlapping_and_dense(sizes, strides) and is_non_overlapping_and_dense(other.sizes, other.strides)):
        return
    own, item = target._array.itemsize, source._array.itemsize
    first, last = start * own, start * own + target._array.nbytes
    begin, end = other.offset * item, other.offset * item + source._array.nbytes
    same = first == begin and last == end and strides == other.strides
    if not same and first < end and begin < last:
        raise RuntimeError(PARTIAL)


def is_lazy(tensor: Tensor) -> bool:
    """Whether values are negated or conjugated when read: PyTorch has kernels work on a copy that holds them.

    What such a tensor shares with others does not matter then; only copying back finds its own memory shared.
    """
    return tensor._conj or tensor._neg


def refuse_shared(target: Tensor, source: Tensor) -> None:
    """Raise RuntimeError when ``source`` reads any of the elements that ``target`` writes, even just the same ones."""
    if is_lazy(target) or is_lazy(source):
        return
    if target is not source:
        if target._storage is None or source._storage is not target._storage:
            return
        if not all(is_non_overlapping_and_dense(t._array.shape, t.strides) for t in (target, source)):
            return  # PyTorch does not look any closer
        if not np.may_share_memory(target._array, source._array):
            return
        if not target._array.size:
            return
    raise RuntimeError(PARTIAL)


def refuse_any_shared(target: Tensor, operands: Sequence[Any]) -> None:
    """:func:`refuse_shared` for every tensor among the operands."""
    for operand in operands:
        if isinstance(operand, Tensor):
            refuse_shared(target, operand)


def refuse_lazy_overlap(target: Tensor) -> None:
    """Raise RuntimeError when a kernel's copy of ``target`` cannot be copied back: it is lazy, and expanded."""
    if is_lazy(target):
        refuse_internal_overlap(target)


def refuse_overlap(target: Tensor, operands: Sequence[Any]) -> None:
    """Both checks, against every tensor among the operands; those that are lazy pass."""
    if is_lazy(target):
        return
    refuse_internal_overlap(target)
    if target._storage is not None:
        for operand in operands:
            if isinstance(operand, Tensor) and not is_lazy(operand):
                refuse_partial_overlap(target, operand)


def writable(tensor: Tensor) -> Array:
    """The tensor's array for writing; NumPy hands out expanded ones read-only."""
    if tensor._array.flags.writeable:
        return tensor._array
    return strided(tensor.storage_, tensor.layout_, tensor.dtype)
