"""``a * b + c`` with one rounding, as the fused multiply-add of a processor gives it."""

from __future__ import annotations

from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]
LANES = 32  # elements of half precision that an AVX2 loop takes at once: two vectors
_SPLIT = 134217729.0  # 2 ** 27 + 1 cuts a double into two halves whose products are exact


def fused(a: Any, b: Any, c: Any, dtype: Any = np.float32) -> Values:
    """``a * b + c`` rounded once to float32 or float64."""
    if dtype != np.float64:  # the product of two float32 is exact in float64
        return np.asarray(np.add(np.multiply(a, b, dtype=np.float64), c), dtype)
    a, b, c = (np.asarray(x, np.float64) for x in (a, b, c))
    with np.errstate(all="ignore"):
        product, low = _product(a, b)
        total = product + c
        rest = total - product
        exact = total + (((product - (total - rest)) + (c - rest)) + low)
        total = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, total)  # the product itself never overflows
    return np.asarray(
        np.where(np.isfinite(exact) & (exact != 0), exact, total)
    )  # infinities have NaN errors, -0 has +0


def _product(a: Values, b: Values) -> tuple[Values, Values]:
    """The product and its rounding error (Dekker)."""
    product = a * b
    a_high, b_high = _high(a), _high(b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _high(x: Values) -> Values:
    scaled = x * _SPLIT
    return np.asarray(scaled - (scaled - x))


def half_fused(a: Any, b: Any, alpha: Any, half: Any) -> Values:
    """``a + alpha * b`` of float16 or bfloat16, as PyTorch's CPU kernel rounds it.

    Whole vectors are computed in float32 and rounded once; for what is left over, and for operands that do not lie
    densely in one order, the product is rounded first.
    """
    wide, product = a.astype(np.float32), b.astype(np.float32) * np.float32(alpha)
    result = np.asarray((wide + product.astype(half).astype(np.float32)).astype(half))
    if count := _vectored([x for x in (a, b) if x.ndim]):
        order = np.argsort([-abs(step) for step in (a if a.ndim else b).strides], kind="stable")
        once = np.asarray(wide + product).transpose(order).ravel()
        flat = result.transpose(order).ravel()
        flat[:count] = once[:count].astype(half)
        sizes = [result.shape[dim] for dim in order]
        result = flat.reshape(sizes).transpose(np.argsort(order))
    return result


def _vectored(operands: list[Values]) -> int:
    """How many elements, in the order of memory, whole vectors take; 0 unless all operands are dense and alike."""
    first = operands[0] if operands else None
    if first is None or any((x.shape, x.strides) != (first.shape, first.strides) for x in operands):
        return 0
    step = first.itemsize
    for stride, size in sorted(zip(first.strides, first.shape, strict=True)):
        if size != 1 and stride != step:
            return 0
        step *= size
    return first.size // LANES * LANES
