"""Which device ``cuda`` is: chosen once by ``--device``, the environment or the default, and made when first needed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.cuda_errors import invalid_device
from stridescope.engine.devices.gpu_models import GIB
from stridescope.engine.devices.simulated import DEFAULT_SIZE, SimulatedGPU, simulated_name
from stridescope.engine.devices.streams import current_device_index

ENVIRONMENT_VARIABLE = "STRIDESCOPE_DEVICE"
NO_CACHING_VARIABLE = "PYTORCH_NO_CUDA_MEMORY_CACHING"
CHOICES = "auto, cpu, sim, sim:SIZE (such as sim:16GiB) or cuda"

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}

_choice: str | None = None
_devices: list[SimulatedGPU] | None = None
_settings: AllocatorSettings | None = None
_seed: int | None = None
_watchers: list[Callable[[], None]] = []


def parse_size(text: str) -> int:
    """Bytes from "512M", "16GiB" or a plain number; raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * (1 << _POWERS[found[2].upper()])) if found else 0
    if size <= 0:
        raise ValueError(f"'{text}' is no memory size: write it like 512MiB, 8GiB or a number of bytes above 0")
    return size


def configure(text: str) -> None:
    """Choose what ``cuda`` is from now on; raises ValueError for a text that is none of ``CHOICES``."""
    global _choice, _devices
    _parse_choice(text)
    _choice, _devices = text, None


def _parse_choice(text: str) -> int:
    """The size of the simulated GPU, 0 for none."""
    if text == "cpu":
        return 0
    if text in ("auto", "sim"):
        return DEFAULT_SIZE
    if text.startswith("sim:"):
        return parse_size(text.removeprefix("sim:"))
    if text == "cuda":
        raise ValueError("no real GPU can be used yet: choose sim, sim:SIZE or cpu")
    raise ValueError(f"no device '{text}': choose {CHOICES}")


def choice() -> str:
    """The text that chose the device."""
    return _choice or os.environ.get(ENVIRONMENT_VARIABLE) or "auto"


def cuda_devices() -> list[SimulatedGPU]:
    """The devices behind ``cuda:0``, ``cuda:1`` and so on; empty when there are none."""
    global _devices
    if _devices is None:
        size = _parse_choice(choice())
        _devices = [SimulatedGPU(size, settings=allocator_settings())] if size else []
        for found in _devices:
            found.allocator.caching_enabled = os.environ.get(NO_CACHING_VARIABLE) != "1"
        if _seed is not None:
            seed_all_devices(_seed)
        for notify in _watchers if _devices else ():
            notify()
    return _devices


def on_first_use(notify: Callable[[], None]) -> None:
    """Call back when the devices are made; at once where they are."""
    _watchers.append(notify)
    if _devices:
        notify()


def seed_all_devices(seed: int) -> None:
    """Seed the generators of all devices: now where they are made, else when they are."""
    global _seed
    _seed = seed
    for found in _devices or ():
        found.generator.manual_seed(seed)


def device_count() -> int:
    """How many cuda devices there are; makes none."""
    if _devices is not None:
        return len(_devices)
    return 1 if _parse_choice(choice()) else 0


def is_initialized() -> bool:
    """Whether a device was made already."""
    return bool(_devices)


def current_device() -> SimulatedGPU:
    """This thread's current cuda device; raises PyTorch's AssertionError when there is none."""
    return device_at(current_device_index())


def device_at(index: int) -> SimulatedGPU:
    """A cuda device by its index; raises PyTorch's errors for one that is not there."""
    devices = cuda_devices()
    if not devices:
        raise AssertionError("Torch not compiled with CUDA enabled")
    if not 0 <= index < len(devices):
        raise invalid_device()
    return devices[index]


def allocator_settings() -> AllocatorSettings:
    """The allocator's options, read from the environment when first needed; PyTorch's errors for bad ones."""
    global _settings
    if _settings is None:
        text = os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or os.environ.get("PYTORCH_ALLOC_CONF") or ""
        _settings = AllocatorSettings(text)
    return _settings


def describe() -> str:
    """One line on what ``cuda`` is here and why, for ``stridescope devices``; makes no device."""
    size = _parse_choice(choice())
    if not size:
        return f"cuda: none, because the device was chosen as '{choice()}'"
    return f"cuda: {simulated_name()}, {size / GIB:.2f} GiB, because the device was chosen as '{choice()}'"
