"""Products of complex numbers, rounded as PyTorch's kernels round them.

Whole vectors compute ``ac - bd`` and ``ad + bc`` with each product rounded, so that what overflows twice is NaN. What
is left over after the last of them, and elements that do not lie one behind the other, are multiplied one by one,
where the compiler fuses a product with the sum: that is how NumPy multiplies, too. (Of what is left over of single
precision and a number, some more are not fused: which ones depends on the address.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

Values = np.ndarray[Any, Any]
STEP = 64  # bytes that an AVX2 loop takes at once: two vectors


def multiplied(a: Any, b: Any) -> Any:
    """``a * b`` for arrays or numbers of any dtype."""
    product = np.multiply(a, b)
    if product.dtype.kind == "c" and isinstance(product, np.ndarray):
        _by_vectors(product, np.asarray(a), np.asarray(b))
    return product


def _by_vectors(product: Values, a: Values, b: Values) -> None:
    """Overwrite what a loop over whole vectors computes, and of single precision the odd one that is left over."""
    if not product.size or not all(one.dtype == product.dtype for one in (a, b)):
        return
    product, a, b = _in_rows(product, a, b)
    steps = sorted(one.strides[-1] // one.itemsize if one.shape[-1] > 1 else 1 for one in (product, a, b))
    if steps not in ([1, 1, 1], [0, 1, 1]):
        return
    count = product.shape[-1]
    whole = count - count % (STEP // product.itemsize)
    _separately(product[..., :whole], a[..., :whole], b[..., :whole])
    if product.itemsize == 8 and count % 2 and steps[0]:
        _separately(product[..., -1:], a[..., -1:], b[..., -1:])


def _in_rows(*arrays: Values) -> list[Values]:
    """The arrays, broadcast to the shape of the first, with the innermost loop over all of them as the last dim."""
    first = arrays[0]
    order = sorted((d for d in range(first.ndim) if first.shape[d] > 1), key=lambda d: -first.strides[d])
    ones = [d for d in range(first.ndim) if d not in order]
    seen = [np.broadcast_to(one, first.shape) if one is not first else one for one in arrays]
    seen = [one.transpose(*ones, *order) for one in seen]
    last = seen[0].ndim
    while last > 1 and all(one.strides[last - 2] == one.shape[last - 1] * one.strides[last - 1] for one in seen):
        shape = (*seen[0].shape[: last - 2], math.prod(seen[0].shape[last - 2 : last]))
        seen = [as_strided(one, shape, (*one.strides[: last - 2], one.strides[-1])) for one in seen]
        last -= 1
    return seen if last else [one.reshape(1) for one in seen]


def separately(left: Values, right: Values) -> Values:
    """``left * right`` of complex arrays, each product of their parts rounded."""
    product = np.empty(np.broadcast_shapes(left.shape, right.shape), left.dtype)
    _separately(product, left, right)
    return product


def _separately(product: Values, left: Values, right: Values) -> None:
    with np.errstate(all="ignore"):
        product.real = left.real * right.real - left.imag * right.imag
        product.imag = left.real * right.imag + left.imag * right.real
