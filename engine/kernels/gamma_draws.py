"""Numbers of the gamma, Dirichlet and binomial distributions from PyTorch's CPU stream, drawn one element at a time.

Gamma: Marsaglia and Tsang (2000). Binomial: inversion by geometric steps (Devroye 1986) for few expected successes,
else transformed rejection (Hörmann 1993).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stridescope.engine.kernels.mersenne import Stream

Array = np.ndarray[Any, Any]
_SQUEEZE = float(np.float32(0.0331))
# Stirling's approximation of log(k!) lacks this much for k = 0 … 9.
_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _uniform(stream: Stream) -> float:
    return float(stream.doubles(1)[0])


def _gamma(stream: Stream, alpha: Any) -> float:
    """One number; ``alpha`` is a NumPy scalar, whose precision the first steps keep."""
    one, scale = alpha.dtype.type(1), 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = math.pow(1 - _uniform(stream), float(one / alpha))
        alpha = alpha + one
    d = float(alpha - one / alpha.dtype.type(3))
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = float(stream.normals(1)[0])
        y = 1.0 + c * x
        if y <= 0:
            continue
        v, u, square = y * y * y, 1 - _uniform(stream), x * x
        if u < 1.0 - _SQUEEZE * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def gamma(stream: Stream, alphas: Array) -> Array:
    """A gamma number with rate one for each shape parameter; never less than the smallest normal number."""
    kind = alphas.dtype
    drawn = np.array([_gamma(stream, alpha) for alpha in alphas.reshape(-1)], np.float64)
    return np.asarray(np.maximum(drawn.astype(kind), np.finfo(kind).tiny)).reshape(alphas.shape)


def dirichlet(stream: Stream, alphas: Array) -> Array:
    """Vectors along the last dim that sum to one: gamma numbers over their sum, strictly inside (0, 1)."""
    kind = alphas.dtype
    flat = alphas.astype(np.float64).reshape(-1)
    drawn = np.array([_gamma(stream, alpha) for alpha in flat], np.float64).reshape(alphas.shape)
    shares = (drawn / drawn.sum(-1, keepdims=True)).astype(kind)
    highest = np.nextafter(kind.type(1), kind.type(0))
    return np.asarray(np.minimum(highest, np.maximum(np.finfo(kind).tiny, shares)))


def binomial(stream: Stream, counts: Array, probabilities: Array) -> Array:
    """How many of ``counts`` trials succeed; both arrays have one shape."""
    pairs = zip(counts.reshape(-1).tolist(), probabilities.reshape(-1).tolist(), strict=True)
    drawn = [_binomial(stream, count, probability) for count, probability in pairs]
    return np.array(drawn, counts.dtype).reshape(counts.shape)


def _binomial(stream: Stream, count: float, probability: float) -> float:
    if count <= 0 or probability <= 0:
        return 0
    if probability >= 1:
        return count
    if probability <= 0.5:
        return _successes(stream, count, probability)
    if probability > 0.5:
        return count - _successes(stream, count, 1.0 - probability)
    return math.nan


def _successes(stream: Stream, count: float, probability: float) -> float:
    if count * probability >= 10.0:
        return _by_rejection(stream, count, probability)
    steps, found, rate = 0.0, 0, math.log1p(-probability)
    while True:
        steps += math.ceil(math.log(_uniform(stream)) / rate)
        if steps > count:
            return found
        found += 1


def _tail(k: float) -> float:
    if k <= 9:
        return _TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _by_rejection(stream: Stream, count: float, p: float) -> float:
    spread = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    limit, odds, alpha = 0.92 - 4.2 / b, p / (1 - p), (2.83 + 5.1 / b) * spread
    m = math.floor((count + 1) * p)
    while True:
        u, v = _uniform(stream) - 0.5, _uniform(stream)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + (count * p + 0.5))
        if k < 0 or k > count:
            continue
        if us >= 0.07 and v <= limit:
            return k
        bound = (
            (m + 0.5) * math.log((m + 1) / (odds * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
            + (_tail(m) + _tail(count - m) - _tail(k) - _tail(count - k))
        )
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return k
