"""Kernels of PyTorch's CUDA part that draw more than one plain distribution: permutations, dropout, multinomial.

Written after the published kernels, on top of :mod:`.philox`. None of them is proven against a real GPU: which thread
draws which number is exact, while logarithms, tangents and exponentials, which the GPU approximates for float32, are
exact here, so that last bits may differ.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stridescope.engine.devices import philox
from stridescope.engine.devices.philox import Launch, Values, Words

MULTINOMIAL_BLOCK = 128
BERNOULLI_BLOCK = 512
# What a kernel says it uses up where that does not follow from its launch.
BERNOULLI_OFFSETS = 12
MULTINOMIAL_OFFSETS = 4


def words_of_threads(seed: int, offset: int, threads: int, calls: int = 1) -> Words:
    """The words that each thread draws first: (threads, 4 * calls)."""
    words = philox.calls_of(seed, offset, Launch(threads, calls))
    return np.ascontiguousarray(words.transpose(2, 0, 1)).reshape(threads, -1)


def cauchy(
    seed: int, offset: int, numel: int, launch: Launch, dtype: np.dtype[Any], median: float, sigma: float
) -> Values:
    """What ``cauchy_`` gives: the tangent of a uniform value, which is kept away from both ends."""
    values = philox.unit(seed, offset, numel, launch, dtype)
    wide, epsilon = values.dtype.type, np.finfo(values.dtype).eps
    values = np.clip(values, epsilon, wide(1) - epsilon)
    return np.asarray(wide(median) + wide(sigma) * np.tan(wide(np.pi) * (values - wide(0.5)))).astype(dtype)


def geometric(seed: int, offset: int, numel: int, launch: Launch, dtype: np.dtype[Any], p: float) -> Values:
    """What ``geometric_`` gives: how many tries the first success takes."""
    values = philox.unit(seed, offset, numel, launch, dtype)
    return np.asarray(np.ceil(np.log(values) / np.log(values.dtype.type(1.0 - p))))


def log_normal(
    seed: int, offset: int, numel: int, launch: Launch, dtype: np.dtype[Any], mean: float, std: float
) -> Values:
    """What ``log_normal_`` gives: the exponential of a normal value."""
    wide = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)
    return np.asarray(np.exp(philox.normal(seed, offset, numel, launch, wide, mean, std))).astype(dtype)


def any_value(seed: int, offset: int, numel: int, launch: Launch, dtype: np.dtype[Any], limit: int) -> Values:
    """What ``random_()`` gives: whole numbers below ``limit``, from 64 bits each for int64 and float64."""
    words = philox.calls_of(seed, offset, launch).astype(np.uint64)
    if dtype.itemsize == 8:
        words = (words[:, 0::2] << np.uint64(32)) | words[:, 1::2]
    return (words.reshape(-1)[:numel] % np.uint64(limit)).astype(dtype)


def bernoulli_each(seed: int, offset: int, probabilities: Values) -> Values:
    """What ``bernoulli`` gives for a probability of each element: a thread decides about four neighbours."""
    threads = -(-probabilities.size // 4)
    values = philox._floats(words_of_threads(seed, offset, threads)).reshape(-1)[: probabilities.size]
    return np.asarray(values <= probabilities)


def dropout_mask(seed: int, offset: int, numel: int, launch: Launch, keep: float, itemsize: int) -> Values:
    """Which elements the fused dropout keeps.

    A thread loads neighbours together: as many as 16 bytes hold, or half, or a quarter of that, so that they divide
    the number of elements. It draws a call for each four of them, also where it takes but two. A thread with one
    element at a time gives the words of a call to elements a launch apart, as the plain kernels do.
    """
    width = 16 // itemsize
    while numel % width:
        width //= 2
    if width == 1:
        return np.asarray(philox.unit(seed, offset, numel, launch, np.dtype(np.float32)) < np.float32(keep))
    turns = -(-numel // (launch.threads * width))
    calls = max(width // 4, 1)
    kept = philox._floats(words_of_threads(seed, offset, launch.threads, turns * calls)) < np.float32(keep)
    by_turn = kept.reshape(launch.threads, turns, 4 * calls)[:, :, :width].transpose(1, 0, 2)
    return np.ascontiguousarray(by_turn).reshape(-1)[:numel]


def permutation_bits(n: int) -> int:
    """How many bits of a random key ``randperm`` sorts by: enough to make equal keys rare."""
    return min(64, math.ceil(math.log2(n - (6 * n * n + 1) / (12 * math.log(0.9)))))


def shuffle_equal_keys(seed: int, offset: int, keys: Values, order: Values) -> Values:
    """Shuffle ``order`` inside each run of equal keys, as the thread at the run's beginning does."""
    order = order.copy()
    equal = np.flatnonzero(keys[1:] == keys[:-1])
    beginnings = equal[np.diff(equal, prepend=-2) > 1]
    for begin in beginnings.tolist():
        size = int(np.argmax(np.append(keys[begin:] != keys[begin], True)))
        zero = np.zeros(1, np.uint32)
        for step in range(size - 1, 0, -1):
            drawn = size - 1 - step
            counter = (zero + np.uint32(offset // 4 + drawn // 4), zero, zero + np.uint32(begin), zero)
            word = int(philox.philox(counter, (seed & 0xFFFFFFFF, seed >> 32))[drawn % 4][0])
            here, there = begin + step, begin + word % (step + 1)
            order[[here, there]] = order[[there, here]]
    return order


def multinomial(seed: int, offset: int, weights: Values, count: int) -> Values:
    """Indices drawn with replacement from each row of weights, by bisection of their running sums."""
    blocks = -(-count // MULTINOMIAL_BLOCK)
    stride = blocks * MULTINOMIAL_BLOCK
    found = np.empty((weights.shape[0], count), np.int64)
    words = words_of_threads(seed, offset, weights.shape[0] * stride)[:, 0]
    for number, row in enumerate(weights):
        shares = (row / row.sum(dtype=row.dtype)).astype(row.dtype)
        sums = np.add.accumulate(shares, dtype=row.dtype)
        drawn = philox._floats(words[number * stride :][:count]).astype(row.dtype)
        places = np.minimum(np.searchsorted(sums, drawn, side="left"), row.size - 1)
        last = np.maximum.accumulate(np.where(shares > 0, np.arange(row.size), 0))
        found[number] = last[places]
    return found
