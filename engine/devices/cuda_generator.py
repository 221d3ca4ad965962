"""The random number generators of the cuda devices: a seed, and how far its sequence is used up."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.devices import philox
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
