"""``a * b + c`` with one rounding, as the fused multiply-add of a processor gives it."""

from __future__ import annotations

from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]
_SPLIT = 134217729.0  # 2 ** 27 + 1 cuts a double into two halves whose products are exact


def fused(a: Any, b: Any, c: Any, dtype: Any = np.float32) -> Values:
    """``a * b + c`` rounded once to float32 or float64."""
    a, b, c = (np.asarray(x, np.float64) for x in (a, b, c))
    if dtype != np.float64:
        return np.asarray(a * b + c, dtype)  # the product of two float32 is exact in float64
    with np.errstate(all="ignore"):
        product, low = _product(a, b)
        total = product + c
        rest = total - product
        exact = total + (((product - (total - rest)) + (c - rest)) + low)
    return np.asarray(np.where(np.isfinite(exact), exact, total))  # the errors of infinities are NaN


def _product(a: Values, b: Values) -> tuple[Values, Values]:
    """The product and its rounding error (Dekker)."""
    product = a * b
    a_high, b_high = _high(a), _high(b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _high(x: Values) -> Values:
    scaled = x * _SPLIT
    return np.asarray(scaled - (scaled - x))
