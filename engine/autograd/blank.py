"""New tensors of one value, for gradients to be written into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.layout import Layout, contiguous_strides, dense_strides_like
from stridescope.engine.tensor import Tensor, fresh, over


def blank(sizes: Sequence[int], strides: Sequence[int], like: Any, value: int = 0) -> Tensor:
    """A tensor of these sizes and strides, filled with ``value``; dtype and device are those of ``like``."""
    kind = like.dtype.np
    layout = Layout(tuple(sizes), tuple(strides))
    count = layout.extent()
    memory = np.full(count, value, kind) if value else np.zeros(count, kind)
    if count > layout.numel:  # a storage is made of memory without gaps
        return over(fresh(memory, like.dtype, like.device).storage_, layout, like.dtype)
    item = memory.itemsize
    array = np.ndarray(tuple(sizes), kind, memory if count else bytearray(), 0, tuple(s * item for s in strides))
    return fresh(array, like.dtype, like.device)


def zeros(sizes: Sequence[int], like: Any) -> Tensor:
    """Row-major zeros; dtype and device are those of ``like``."""
    return blank(sizes, contiguous_strides(sizes), like)


def ones(sizes: Sequence[int], like: Any) -> Tensor:
    """Row-major ones; dtype and device are those of ``like``."""
    return blank(sizes, contiguous_strides(sizes), like, 1)


def zeros_like(tensor: Tensor) -> Tensor:
    """Zeros in the shape and layout of a tensor, without history."""
    return blank(tensor._array.shape, dense_strides_like(tensor._array.shape, tensor.strides), tensor)


def ones_like(tensor: Tensor) -> Tensor:
    """Ones in the shape and layout of a tensor, without history."""
    return blank(tensor._array.shape, dense_strides_like(tensor._array.shape, tensor.strides), tensor, 1)
