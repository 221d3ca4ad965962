"""The random numbers of PyTorch's CUDA kernels, from Philox 4x32-10: pure functions of (seed, offset, shape of launch).

PyTorch launches at most one thread per resident slot of the GPU. Thread ``t`` reads Philox blocks whose counter is
``(offset / 4 + call, t)``; a call gives four words (or two doubles), and word ``i`` goes to the element ``i * threads``
further on. So the values of a tensor depend on the GPU model once it has more elements than the GPU holds threads.

What is proven, and against what:

* the generator itself: against the published known-answer vectors of Philox 4x32-10;
* ``uniform`` in float32 for a seed: the published first values of ``torch.rand`` on CUDA (four digits);
* ``normal`` in float32: the published first values of ``torch.randn`` on CUDA (four digits). The kernel uses the
  GPU's approximate sine and cosine; here they are exact, so the last bits may differ;
* ``integers``, ``bernoulli``, ``exponential`` and all other dtypes: written after the published kernels, not yet
  compared with a real GPU.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint32]]
Values = np.ndarray[Any, Any]

BLOCK_SIZE = 256
OFFSETS_PER_CALL = 4
WORDS_PER_CALL = 4
DOUBLES_PER_CALL = 2
# From this range on integers are drawn from 64 bits, to keep the skew of the modulo small.
WIDE_RANGE = 1 << 28

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


@dataclasses.dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is launched: the threads, the calls of each, and what the generator's offset moves on by."""

    threads: int
    calls: int

    @property
    def increment(self) -> int:
        """The offsets that the launch uses up."""
        return self.calls * OFFSETS_PER_CALL


def launch_for(numel: int, per_call: int, processors: int, threads_per_processor: int) -> Launch:
    """The launch for ``numel`` elements, ``per_call`` of them from one call of a thread."""
    resident = processors * (threads_per_processor // BLOCK_SIZE)
    threads = min(resident, -(-numel // BLOCK_SIZE)) * BLOCK_SIZE
    return Launch(threads, (numel - 1) // (threads * per_call) + 1)


def philox(counter: tuple[Words, Words, Words, Words], key: tuple[int, int]) -> tuple[Words, Words, Words, Words]:
    """Philox 4x32 with ten rounds, for many counters at once."""
    a, b, c, d = (word.astype(np.uint64) for word in counter)
    low, high = key
    for _ in range(_ROUNDS):
        left, right = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b = (right >> _SHIFT) ^ b ^ np.uint64(low), right & _LOW
        c, d = (left >> _SHIFT) ^ d ^ np.uint64(high), left & _LOW
        low, high = (low + _WEYL[0]) & 0xFFFFFFFF, (high + _WEYL[1]) & 0xFFFFFFFF
    return a.astype(np.uint32), b.astype(np.uint32), c.astype(np.uint32), d.astype(np.uint32)


def calls_of(seed: int, offset: int, launch: Launch) -> Words:
    """The words of a launch as an array of (calls, 4, threads): flattened, they lie in element order."""
    thread = np.arange(launch.threads, dtype=np.uint32)
    zero = np.zeros_like(thread)
    key = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    rows = []
    for call in range(launch.calls):
        position = offset // 4 + call
        counter = (zero + np.uint32(position & 0xFFFFFFFF), zero + np.uint32(position >> 32), thread, zero)
        rows.append(np.stack(philox(counter, key)))
    return np.stack(rows)


def _floats(words: Words) -> Values:
    """Words as float32 in (0, 1]."""
    return words.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)


def _doubles(words: Words) -> Values:
    """Pairs of words as float64 in (0, 1], (calls, 2, threads)."""
    wide = words.astype(np.uint64)
    mantissa = wide[:, 0::2] ^ (wide[:, 1::2] << np.uint64(53 - 32))
    return mantissa.astype(np.float64) * 2.0**-53 + 2.0**-54


def per_call_of(dtype: np.dtype[Any]) -> int:
    """How many values of a floating dtype one call gives."""
    return DOUBLES_PER_CALL if dtype == np.float64 else WORDS_PER_CALL


def unit(seed: int, offset: int, numel: int, launch: Launch, dtype: np.dtype[Any]) -> Values:
    """Uniform values in (0, 1], in float64 for that dtype and in float32 for all others."""
    words = calls_of(seed, offset, launch)
    values = _doubles(words) if dtype == np.float64 else _floats(words)
    return values.reshape(-1)[:numel]


def uniform(
    seed: int, offset: int, numel: int, launch: Launch, dtype: np.dtype[Any], low: float = 0.0, high: float = 1.0
) -> Values:
    """What ``uniform_`` gives: values in [low, high), where the draw that gives ``high`` becomes ``low``."""
    first, last = dtype.type(low), dtype.type(high)
    wide = np.float64 if dtype == np.float64 else np.float32
    values = _scaled(unit(seed, offset, numel, launch, dtype), wide(last - first), wide(first)).astype(dtype)
    return np.where(values == last, first, values)


def _scaled(values: Values, factor: Any, summand: Any) -> Values:
    """``values * factor + summand`` with one rounding, as the GPU's fused multiply-add gives it in float32."""
    if values.dtype == np.float64:
        return np.asarray(values * factor + summand)
    return np.asarray(values.astype(np.float64) * float(factor) + float(summand)).astype(np.float32)


def normal(
    seed: int, offset: int, numel: int, launch: Launch, dtype: np.dtype[Any], mean: float = 0.0, std: float = 1.0
) -> Values:
    """What ``normal_`` gives, by Box and Muller: each pair of uniform values makes a pair of normal ones."""
    words = calls_of(seed, offset, launch)
    wide = np.float64 if dtype == np.float64 else np.float32
    values = _box_muller_doubles(words) if dtype == np.float64 else _box_muller_floats(words)
    return _scaled(values.reshape(-1)[:numel], wide(std), wide(mean)).astype(dtype)


def _box_muller_floats(words: Words) -> Values:
    radius = np.sqrt(np.float32(-2.0) * np.log(_floats(words[:, 0::2])))
    turn = float(np.float32(2.0**-32) * np.float32(6.2831855))
    angle = (words[:, 1::2].astype(np.float32).astype(np.float64) * turn + turn / 2).astype(np.float32)
    pairs = np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=2)
    return pairs.reshape(words.shape[0], WORDS_PER_CALL, -1)


def _box_muller_doubles(words: Words) -> Values:
    unit_values = _doubles(words)
    radius = np.sqrt(-2.0 * np.log(unit_values[:, 0]))
    wide = words.astype(np.uint64)
    half_turns = (wide[:, 2] ^ (wide[:, 3] << np.uint64(21))).astype(np.float64) * 2.0**-52 + 2.0**-53
    return np.stack([radius * np.sin(np.pi * half_turns), radius * np.cos(np.pi * half_turns)], axis=1)


def integers(seed: int, offset: int, numel: int, launch: Launch, dtype: np.dtype[Any], low: int, high: int) -> Values:
    """What ``random_(low, high)`` gives; the launch is made for ``integers_per_call(low, high)`` values a call."""
    words = calls_of(seed, offset, launch)
    values = words.astype(np.uint64)
    if high - low >= WIDE_RANGE:
        values = (values[:, 0::2] << _SHIFT) | values[:, 1::2]
    drawn = values.reshape(-1)[:numel] % np.uint64(high - low)
    return (drawn + np.uint64(low & (1 << 64) - 1)).astype(np.int64).astype(dtype)


def integers_per_call(low: int, high: int) -> int:
    """How many integers of a range one call gives."""
    return DOUBLES_PER_CALL if high - low >= WIDE_RANGE else WORDS_PER_CALL


def bernoulli(seed: int, offset: int, numel: int, launch: Launch, dtype: np.dtype[Any], probability: float) -> Values:
    """What ``bernoulli_(p)`` gives for one probability."""
    values = unit(seed, offset, numel, launch, dtype)
    return np.asarray(values < values.dtype.type(probability)).astype(dtype)


def exponential(seed: int, offset: int, numel: int, launch: Launch, dtype: np.dtype[Any], rate: float = 1.0) -> Values:
    """What ``exponential_`` gives: minus the logarithm over the rate, kept away from 0."""
    values = unit(seed, offset, numel, launch, dtype)
    wide = values.dtype.type
    epsilon = np.finfo(values.dtype).eps / 2
    logarithm = np.where(values >= wide(1) - wide(epsilon), wide(-epsilon), np.log(values))
    return np.asarray(wide(-1.0) / wide(rate) * logarithm).astype(dtype)
