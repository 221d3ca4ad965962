"""Nested Python data as an array: the inference of ``torch.tensor``."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dtype import FROM_NUMPY, default_float, dtype, of_category
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor


def array_of(data: Any, kind: dtype | None) -> tuple[Array, dtype]:
    """A fresh row-major array of ``data`` and its dtype.

    Python floats become the default float, ints int64. Raises ValueError for ragged lists and TypeError for what is
    no number, with PyTorch's texts.
    """
    if isinstance(data, Tensor):
        chosen = kind or data.dtype
        return np.array(data._array.astype(chosen.np), order="C"), chosen
    if isinstance(data, np.ndarray | np.generic):
        chosen = kind or FROM_NUMPY[np.asarray(data).dtype]
        return np.array(np.asarray(data).astype(chosen.np), order="C"), chosen
    shape = _shape(data)
    flat: list[Any] = []
    _flatten(data, shape, 0, flat)
    chosen = kind or _inferred(flat)
    return np.array(flat, dtype=None if not flat else object).astype(chosen.np).reshape(shape), chosen


def _shape(data: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(data, (list, tuple, range)) or (isinstance(data, Tensor) and data._array.ndim):
        shape.append(len(data) if not isinstance(data, Tensor) else data._array.shape[0])
        if not shape[-1]:
            break
        data = data[0]
    if isinstance(data, np.ndarray):
        shape.extend(data.shape)
    return tuple(shape)


def _flatten(data: Any, shape: tuple[int, ...], dim: int, flat: list[Any]) -> None:
    if dim == len(shape):
        flat.append(_number(data))
        return
    if isinstance(data, np.ndarray):
        flat.extend(data.ravel().tolist())
        return
    length = len(data) if hasattr(data, "__len__") else -1
    if length != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {length})")
    for item in data:
        _flatten(item, shape, dim + 1, flat)


def _number(value: Any) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, (Tensor, np.generic)):
        return value.item()
    if value is None:
        raise RuntimeError("Could not infer dtype of NoneType")
    if isinstance(value, str):
        raise TypeError("new(): invalid data type 'str'")
    raise RuntimeError(f"Could not infer dtype of {type(value).__name__}")


_CATEGORY = {bool: 0, int: 1, float: 2, complex: 3}


def _inferred(flat: list[Any]) -> dtype:
    if not flat:
        return default_float()
    return of_category(max(_CATEGORY.get(type(v), 2) for v in flat))
