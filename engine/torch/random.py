"""``torch.random``: seeds and states of the CPU's default generator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from stridescope.engine.devices.registry import cuda_devices, seed_all_devices
from stridescope.engine.ops.generator import Generator, checked_seed, default_generator
from stridescope.engine.tensor import Tensor


def manual_seed(seed: Any) -> Generator:
    """Seed the default generators of all devices; returns the CPU's."""
    number = checked_seed(seed)
    seed_all_devices(number)
    return default_generator.manual_seed(number)


def seed() -> int:
    """Seed the default generators of all devices with an unforeseeable number, and return it."""
    number = default_generator.seed()
    seed_all_devices(number)
    return number


def initial_seed() -> int:
    """The seed that the CPU's default generator began with."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the CPU's default generator."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the CPU's default generator back into a state."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_names: Any) -> Iterator[None]:
    """Give the generators their states back after the block."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    others = [(gpu.generator, gpu.generator.state()) for gpu in cuda_devices()]
    try:
        yield
    finally:
        set_rng_state(state)
        for generator, before in others:
            generator.set_state(before)


def thread_safe_generator() -> Generator | None:
    """The generator of the DataLoader worker that asks, where workers are threads; None elsewhere, so always here."""
    return None


__all__ = [
    "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
    "thread_safe_generator",
]  # fmt: skip
