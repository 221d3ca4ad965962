"""Box and Muller's transform as PyTorch's vectorised float kernel computes it, to the last bit.

PyTorch's AVX2 kernel takes logarithm, sine and cosine from single-precision polynomials (those of the Cephes library)
with fused multiply-adds. A fused step is done here in float64 and rounded once: the product is exact there.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from stridescope.engine.kernels.fused import fused

Values = np.ndarray[Any, Any]
_f = np.float32

_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_LN2_LOW, _LN2_HIGH = _f(-2.12194440e-4), _f(0.693359375)
_SQRT_HALF = _f(0.707106781186547524)
_QUARTER_TURNS = _f(1.27323954473516)
_QUARTER = (_f(-0.78515625), _f(-2.4187564849853515625e-4), _f(-3.77489497744594108e-8))
_COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)


def _polynomial(x: Values, coefficients: tuple[float, ...]) -> Values:
    first = np.full_like(x, _f(coefficients[0]))
    return functools.reduce(lambda y, c: fused(y, x, _f(c)), coefficients[1:], first)


def _log(x: Values) -> Values:
    mantissa, exponent = np.frexp(np.maximum(x, np.finfo(_f).tiny))
    x, exponent = mantissa.astype(_f), exponent.astype(_f)
    small = x < _SQRT_HALF
    x, exponent = (x - _f(1)) + np.where(small, x, _f(0)), exponent - small.astype(_f)
    square = x * x
    y = fused(_polynomial(x, _LOG) * x, square, exponent * _LN2_LOW)
    return fused(exponent, _LN2_HIGH, x + fused(square, _f(-0.5), y))


def _sine_and_cosine(x: Values) -> tuple[Values, Values]:
    """Of angles from 0 on: the eighth turn decides which polynomial gives which, and the signs."""
    eighth = (((x * _QUARTER_TURNS).astype(np.int32)) + 1) & ~1
    turns = eighth.astype(_f)
    for part in _QUARTER:
        x = fused(turns, part, x)
    square = x * x
    cosine = fused(_polynomial(square, _COSINE) * square, square, square * _f(-0.5)) + _f(1)
    sine = fused(_polynomial(square, _SINE) * square, x, x)
    straight = (eighth & 2) == 0
    sine_sign = np.where(eighth & 4, _f(-1), _f(1))
    cosine_sign = np.where(~(eighth - 2) & 4, _f(-1), _f(1))
    return sine_sign * np.where(straight, sine, cosine), cosine_sign * np.where(straight, cosine, sine)


def boxed(uniform: Values, mean: float, std: float) -> Values:
    """Groups of 16 uniform numbers as normal ones: the first 8 give the radius, the last 8 the angle."""
    groups = uniform.reshape(-1, 2, 8)
    first, second = uniform.dtype.type(1) - groups[:, 0], groups[:, 1]
    if uniform.dtype == np.float64:
        radius, angle = np.sqrt(-2.0 * np.log(first)), 2.0 * np.pi * second
        pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
        return fused(pairs, std, mean, np.float64).reshape(-1)
    radius = np.sqrt(_f(-2) * _log(first))
    sine, cosine = _sine_and_cosine(_f(2 * np.pi) * second)
    return fused(np.stack([radius * cosine, radius * sine], 1), _f(std), _f(mean)).reshape(-1)
