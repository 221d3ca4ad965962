"""``torch.cuda``'s part of the random numbers: the seeds of the devices' generators."""

from __future__ import annotations

from typing import Any

from stridescope.engine.devices.cuda_generator import CudaGenerator
from stridescope.engine.devices.registry import cuda_devices, device_count, seed_all_devices
from stridescope.engine.torch.cuda.device_index import gpu


def _generator(device: Any) -> CudaGenerator:
    return gpu(device).generator


def manual_seed(seed: int) -> None:
    """Seed the current device's generator; without a device nothing happens."""
    if device_count():
        gpu().generator.manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices, without making any now."""
    seed_all_devices(int(seed))


def seed() -> None:
    """Give the current device's generator an unforeseeable seed."""
    if device_count():
        gpu().generator.seed_randomly()


def seed_all() -> None:
    """Give all devices the same unforeseeable seed."""
    if device_count():
        manual_seed_all(gpu().generator.seed_randomly())


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return gpu().generator.seed


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a device's generator as a tensor of bytes."""
    from stridescope.engine import torch

    return torch.tensor(list(_generator(device).state()), dtype=torch.uint8)


def get_rng_state_all() -> list[Any]:
    """The states of all devices' generators."""
    return [get_rng_state(index) for index in range(len(cuda_devices()))]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set a device's generator back to a state."""
    _generator(device).set_state(bytes(new_state.tolist()))


def set_rng_state_all(new_states: Any) -> None:
    """Set all devices' generators back."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
