"""What the ops of linear algebra share: checks, column-major results, loops over batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.run import laid_out
from stridescope.engine.dtype import FLOAT, dtype, float32, float64, scalar_name
from stridescope.engine.layout import contiguous_strides
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, bump_version, fresh


class LinAlgError(RuntimeError):
    """``torch.linalg.LinAlgError``: an algorithm broke down on this input."""


LinAlgError.__module__ = "torch._C"
LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"


def linalg(schema: str, **parts: Any) -> Op:
    """Declare a function of ``torch.linalg``."""
    return define(schema, namespace="torch.linalg", method=False, **parts)


def blank(like: Tensor, shape: Sequence[int], kind: dtype | None = None) -> Tensor:
    """Zeros as the result for empty matrices, of the real dtype of ``like``; PyTorch has written them once."""
    zeros: Tensor = like.new_zeros(shape, dtype=kind or (like.dtype.to_real() if like.dtype.is_complex else like.dtype))
    bump_version(zeros)
    return zeros


def check_matrix(name: str, tensor: Tensor, argument: str = "A") -> None:
    """Refuse what has fewer than two dims."""
    if tensor._array.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def check_square(name: str, tensor: Tensor, argument: str = "A") -> None:
    """Refuse what is no batch of square matrices."""
    check_matrix(name, tensor, argument)
    rows, columns = tensor.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are {rows} by {columns} matrices"
        )


def need_lapack(kernel: str, tensor: Tensor, empty: bool = False) -> None:
    """Refuse dtypes that LAPACK has no routines for, as the kernel of this name does, for ``empty`` matrices too."""
    if tensor.dtype.to_real() not in (float32, float64) and (empty or tensor._array.size):
        raise not_implemented(kernel, tensor.dtype)


def check_precision(name: str, tensor: Tensor) -> None:
    """Refuse half precision, in the words of the functions that look before a kernel does."""
    if tensor.dtype.to_real() not in (float32, float64):
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {scalar_name(tensor.dtype)}")


def check_float(name: str, tensor: Tensor, kernel: str = "") -> None:
    """Refuse integers, and where a ``kernel`` is named what :func:`need_lapack` refuses."""
    if tensor.dtype.category < FLOAT:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(tensor.dtype)}"
        )
    if kernel:
        need_lapack(kernel, tensor)


def column_major(array: Array, kind: dtype, like: Tensor) -> Tensor:
    """A result whose matrices lie column by column, as LAPACK leaves them."""
    strides = list(contiguous_strides(array.shape))
    if array.ndim >= 2:
        strides[-1], strides[-2] = max(array.shape[-2], 1), 1
    array = np.asarray(array, dtype=kind.np)
    return fresh(laid_out(array, tuple(strides)), kind, like.device)


def each(function: Callable[..., Any], *arrays: Array, outputs: int) -> list[list[Any]]:
    """Call ``function`` for each matrix of the batch; the results as one list per output."""
    batch = arrays[0].shape[:-2]
    found: list[list[Any]] = [[] for _ in range(outputs)]
    for place in np.ndindex(*batch):
        for collected, one in zip(found, function(*(a[place] for a in arrays)), strict=True):
            collected.append(one)
    return found


def stacked(items: list[Any], batch: tuple[int, ...], shape: tuple[int, ...], kind: Any) -> Array:
    """Results of :func:`each` as one array."""
    if not items:
        return np.zeros((*batch, *shape), kind)
    return np.array(items, kind).reshape((*batch, *shape))


def eye_like(tensor: Tensor) -> Tensor:
    """The identity in the shape and dtype of a batch of square matrices."""
    size = tensor.shape[-1]
    return fresh(np.eye(size, dtype=tensor.dtype.np), tensor.dtype, tensor.device)


def first_failure(info: Array) -> tuple[str, int]:
    """How the error names the first failed matrix: its place in the batch (if any) and its code."""
    flat = info.reshape(-1)
    place = int(np.flatnonzero(flat)[0])
    return (f"(Batch element {place}): " if info.ndim else ""), int(flat[place])
