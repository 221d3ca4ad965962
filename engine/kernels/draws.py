"""Random distributions on the CPU: how PyTorch's kernels turn the stream into values.

Each function draws ``count`` values of a NumPy dtype in the order in which the kernel fills memory. Float16 and
bfloat16 are drawn as float32 and rounded.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stridescope.engine.kernels.fused import fused
from stridescope.engine.kernels.mersenne import Stream, Values

WIDE_RANGE = 1 << 28  # from this range on integers are drawn from 64 bits, to keep the skew of the modulo small
_DENSE = 16


def uniform(stream: Stream, count: int, dtype: Any, low: float = 0.0, high: float = 1.0) -> Values:
    """Values in [low, high); what half precision rounds up to ``high`` is ``low``."""
    if dtype == np.float64:
        return fused(stream.doubles(count), high - low, low, np.float64)
    one = np.float32
    drawn: Values = fused(stream.floats(count), one(high) - one(low), one(low)).astype(dtype)
    if drawn.dtype.itemsize == 2 and low < high:
        bounds = np.asarray([low, high]).astype(dtype)
        drawn[drawn == bounds[1]] = bounds[0]
    return drawn


def normal(stream: Stream, count: int, dtype: Any, mean: float, std: float, dense: bool) -> Values:
    """Normal values; tensors of 16 elements and more that are dense take another way than small ones."""
    if dense and count >= _DENSE:
        wide = np.float64 if dtype == np.float64 else np.float32
        return stream.normal_block(count, wide, mean, std, np.dtype(dtype).itemsize == 2).astype(dtype)
    values = stream.normals(count)
    if std != 1 or mean:
        values = fused(values, std, mean, np.float64)
    return values.astype(dtype)


def integers(stream: Stream, count: int, low: int, high: int) -> Values:
    """Integers in [low, high), as int64."""
    span = high - low
    raw = stream.wide(count) if span >= WIDE_RANGE else stream.words(count)
    drawn = raw % np.uint64(span) if span < 1 << 64 else raw
    return (drawn + np.uint64(low % (1 << 64))).astype(np.int64)


_ANY_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def any_value(stream: Stream, count: int, dtype: Any) -> Values:
    """What ``random_()`` without bounds gives: all whole numbers that the dtype holds exactly."""
    name = np.dtype(dtype).name
    if name == "bool":
        return (stream.words(count) & np.uint64(1)).astype(np.bool_)
    if name in _ANY_BITS:
        raw = stream.wide(count) if name == "float64" else stream.words(count)
        return (raw % np.uint64((1 << _ANY_BITS[name]) + 1)).astype(np.float64).astype(dtype)
    raw = stream.wide(count) if np.dtype(dtype).itemsize == 8 else stream.words(count)
    return (raw % np.uint64(int(np.iinfo(dtype).max) + 1)).astype(dtype)


def bernoulli(stream: Stream, count: int, probability: Any, single: bool = False) -> Values:
    """Whether each draw succeeds; ``single`` draws float32, as a float32 tensor of probabilities does."""
    drawn = stream.floats(count) if single else stream.doubles(count)
    return np.asarray(drawn < probability)


def exponential(stream: Stream, count: int, rate: float) -> Values:
    """Exponential values, as float64."""
    return np.asarray(-1.0 / rate * np.log1p(-stream.doubles(count)))


def geometric(stream: Stream, count: int, p: float) -> Values:
    """How many tries the first success takes, as float64."""
    return np.ceil(np.log(stream.doubles(count)) / math.log1p(-p))


def cauchy(stream: Stream, count: int, median: float, sigma: float) -> Values:
    """Cauchy values, as float64."""
    return median + sigma * np.tan(np.pi * (stream.doubles(count) - 0.5))


def log_normal(stream: Stream, count: int, mean: float, std: float) -> Values:
    """Exponentials of normal values, as float64."""
    return np.exp(fused(stream.normals(count), std, mean, np.float64))


def permutation(stream: Stream, count: int) -> Values:
    """The numbers below ``count`` in random order."""
    order = list(range(count))
    if count > 1:
        spans = np.arange(count, 1, -1).astype(np.uint64)
        steps = (stream.words(count - 1) % spans).tolist()
        for place, step in enumerate(steps):
            other = place + step
            order[place], order[other] = order[other], order[place]
    return np.array(order, np.int64)


def poisson(stream: Stream, rates: Values) -> Values:
    """Poisson values for these rates, as float64."""
    return np.array([_poisson(stream, rate) for rate in rates.tolist()], np.float64)


def _poisson(stream: Stream, rate: float) -> float:
    if rate >= 10:
        return _poisson_by_rejection(stream, rate)
    if rate == 0:
        return 0.0
    limit, product, count = math.exp(-rate), 1.0, 0
    while True:
        product *= float(stream.doubles(1)[0])
        if product <= limit:
            return float(count)
        count += 1


def _poisson_by_rejection(stream: Stream, rate: float) -> float:
    """Hörmann's transformed rejection (PTRS)."""
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = float(stream.doubles(1)[0]) - 0.5
        v = float(stream.doubles(1)[0])
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= v_r:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        if math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b) <= -rate + k * log_rate - math.lgamma(
            k + 1
        ):
            return float(k)
