"""Products of small matrices, with the roundings of PyTorch's BLAS.

For wide results MKL adds the products one after another in fused steps, as NumPy's BLAS does. For narrow ones its
kernel for small matrices rounds every product and every sum; where few products are added, that order is known and is
followed here (measured against PyTorch 2.13 on sizes from 1 to 100). Elsewhere last bits may differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_WIDE, _HIGH = 16, 4  # a result of so many columns and rows is made in fused steps


def matrix_product(a: Array, b: Array) -> Array:
    """``a @ b``."""
    if a.ndim != 2 or a.dtype != np.float32 or b.ndim != 2 or not _one_by_one(a, b):
        return np.asarray(np.matmul(a, b))
    total = a[:, :1] * b[:1]
    for place in range(1, a.shape[1]):
        total += a[:, place : place + 1] * b[place : place + 1]
    return total


def _one_by_one(a: Array, b: Array) -> bool:
    """Whether each product and each sum is rounded, from the first to the last."""
    rows, inner = a.shape
    columns = b.shape[1]
    if not 0 < inner <= 7 or (columns >= _WIDE and rows >= _HIGH):
        return False
    if inner <= 3:
        return True
    if b.strides[0] == b.itemsize and b.strides[1] != b.itemsize:  # a transposed weight
        return bool(columns < 4 or (rows == 1 and inner == 4))
    return bool(columns > 1 or rows < 4 or inner == 4)
