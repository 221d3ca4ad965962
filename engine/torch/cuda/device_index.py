"""Which ``cuda`` device an argument means."""

from __future__ import annotations

from typing import Any

from stridescope.engine.device import device as torch_device
from stridescope.engine.devices.registry import device_at
from stridescope.engine.devices.simulated import SimulatedGPU
from stridescope.engine.devices.streams import current_device_index


def device_index(device: Any = None, *, optional: bool = True) -> int:
    """The index of a device given as None, a number, a string or a ``torch.device``; ValueError when it is none."""
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if isinstance(device, str):
        device = torch_device(device)
    if isinstance(device, torch_device):
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        if device.index is not None:
            return device.index
    elif device is not None:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return current_device_index()


def gpu(device: Any = None) -> SimulatedGPU:
    """The device itself; the current one for None."""
    return device_at(device_index(device))
