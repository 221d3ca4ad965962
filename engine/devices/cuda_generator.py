"""The random number generators of the cuda devices: a seed, and how far its sequence is used up."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.devices import philox, philox_kernels
from stridescope.engine.devices.device import DeviceProperties

_WORD = (1 << 64) - 1
_PLAIN_SEED_BITS = 53  # what a double holds, as PyTorch's own unforeseeable seeds have


class CudaGenerator:
    """Philox with a seed and an offset. Every draw takes the numbers that a kernel of the device would take."""

    def __init__(self, properties: DeviceProperties) -> None:
        self._properties = properties
        self.seed = 0
        self.offset = 0
        self.seed_randomly()

    def manual_seed(self, seed: int) -> None:
        """Begin the sequence of a seed; only its low 64 bits count."""
        self.seed, self.offset = seed & _WORD, 0

    def seed_randomly(self) -> int:
        """Begin the sequence of an unforeseeable seed, and return it."""
        self.manual_seed(secrets.randbits(_PLAIN_SEED_BITS))
        return self.seed

    def state(self) -> bytes:
        """Seed and offset as 16 bytes, as ``get_rng_state`` shows them."""
        return self.seed.to_bytes(8, "little") + self.offset.to_bytes(8, "little")

    def set_state(self, state: bytes) -> None:
        """Go back to a state; raises PyTorch's RuntimeError for other sizes."""
        if len(state) not in (8, 16):
            raise RuntimeError("RNG state is wrong size")
        self.seed = int.from_bytes(state[:8], "little")
        self.offset = int.from_bytes(state[8:], "little")

    def _draw(self, make: Callable[..., philox.Values], numel: int, per_call: int, *arguments: Any) -> philox.Values:
        machine = self._properties
        launch = philox.launch_for(
            numel, per_call, machine.multi_processor_count, machine.max_threads_per_multi_processor
        )
        values = make(self.seed, self.offset, numel, launch, *arguments)
        self.offset += launch.increment
        return values

    def uniform(self, numel: int, dtype: np.dtype[Any], low: float = 0.0, high: float = 1.0) -> philox.Values:
        """Values in [low, high)."""
        if numel == 0:
            return np.empty(0, dtype)
        return self._draw(philox.uniform, numel, philox.per_call_of(dtype), dtype, low, high)

    def normal(self, numel: int, dtype: np.dtype[Any], mean: float = 0.0, std: float = 1.0) -> philox.Values:
        """Normal values."""
        if numel == 0:
            return np.empty(0, dtype)
        return self._draw(philox.normal, numel, philox.per_call_of(dtype), dtype, mean, std)

    def integers(self, numel: int, dtype: np.dtype[Any], low: int, high: int) -> philox.Values:
        """Integers in [low, high)."""
        if numel == 0:
            return np.empty(0, dtype)
        return self._draw(philox.integers, numel, philox.integers_per_call(low, high), dtype, low, high)

    def bernoulli(self, numel: int, dtype: np.dtype[Any], probability: float) -> philox.Values:
        """Ones with a probability, else zeros."""
        if numel == 0:
            return np.empty(0, dtype)
        return self._draw(philox.bernoulli, numel, philox.per_call_of(dtype), dtype, probability)

    def exponential(self, numel: int, dtype: np.dtype[Any], rate: float = 1.0) -> philox.Values:
        """Exponential values."""
        if numel == 0:
            return np.empty(0, dtype)
        return self._draw(philox.exponential, numel, philox.per_call_of(dtype), dtype, rate)

    def cauchy(self, numel: int, dtype: np.dtype[Any], median: float, sigma: float) -> philox.Values:
        """Cauchy values."""
        return self._draw(philox_kernels.cauchy, numel, philox.per_call_of(dtype), dtype, median, sigma)

    def geometric(self, numel: int, dtype: np.dtype[Any], probability: float) -> philox.Values:
        """How many tries the first success takes."""
        return self._draw(philox_kernels.geometric, numel, philox.per_call_of(dtype), dtype, probability)

    def log_normal(self, numel: int, dtype: np.dtype[Any], mean: float, std: float) -> philox.Values:
        """Exponentials of normal values."""
        return self._draw(philox_kernels.log_normal, numel, philox.per_call_of(dtype), dtype, mean, std)

    def any_value(self, numel: int, dtype: np.dtype[Any], limit: int) -> philox.Values:
        """Whole numbers from 0 up to a limit, by the kernel of ``random_()``."""
        per_call = philox.DOUBLES_PER_CALL if dtype.itemsize == 8 else philox.WORDS_PER_CALL
        return self._draw(philox_kernels.any_value, numel, per_call, dtype, limit)

    def bernoulli_each(self, probabilities: philox.Values) -> philox.Values:
        """True with the probability of each element."""
        drawn = philox_kernels.bernoulli_each(self.seed, self.offset, probabilities)
        self.offset += philox_kernels.BERNOULLI_OFFSETS
        return drawn

    def dropout_mask(self, numel: int, keep: float, itemsize: int) -> philox.Values:
        """True for the elements, of so many bytes each, that dropout keeps."""
        return self._draw(philox_kernels.dropout_mask, numel, philox.WORDS_PER_CALL, keep, itemsize)

    def permutation(self, numel: int) -> philox.Values:
        """The numbers below ``numel`` in the order of random keys; equal keys are shuffled once more."""
        bits = philox_kernels.permutation_bits(numel)
        size = 32 if bits <= 32 else 64
        low, high = -(1 << (size - 1)), (1 << (size - 1)) - 1
        drawn = self.integers(numel, np.dtype(np.int64), low, high).astype(np.uint64)
        keys = drawn & np.uint64((1 << bits) - 1)
        # The sort looks at signed numbers when it looks at all bits.
        order = np.argsort(keys ^ np.uint64(1 << (size - 1)) if bits == size else keys, kind="stable")
        shuffled = philox_kernels.shuffle_equal_keys(self.seed, self.offset, keys[order], order)
        self.offset += -(-numel // 4) * 4
        return shuffled

    def multinomial(self, weights: philox.Values, count: int) -> philox.Values:
        """Indices drawn with replacement, ``count`` of each row of weights."""
        found = philox_kernels.multinomial(self.seed, self.offset, weights, count)
        self.offset += philox_kernels.MULTINOMIAL_OFFSETS
        return found
