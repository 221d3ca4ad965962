"""``torch._C``: the few names of PyTorch's C++ part that scripts call by themselves."""

from __future__ import annotations

from stridescope.engine.devices.registry import allocator_settings
from stridescope.engine.devices.registry import current_device as _current_device
from stridescope.engine.devices.streams import current_stream as _current_stream
from stridescope.engine.ops.generator import Generator
from stridescope.engine.torch._not_yet import attribute_of


def _accelerator_setAllocatorSettings(env: str) -> None:
    """Apply options of the caching allocator; raises PyTorch's errors for bad ones."""
    allocator_settings().parse(env)


def _accelerator_getAllocatorSettings() -> str:
    """The text of the options that was applied last, good or not."""
    return allocator_settings().text


def _cuda_getCurrentRawStream(device: int) -> int:
    """The handle of the stream that this thread's ops on a device join."""
    return _current_stream(device)


def _cuda_getDevice() -> int:
    """The index of this thread's current device."""
    return _current_device().index


def _cuda_isCurrentStreamCapturing() -> bool:
    """Whether a graph is being captured."""
    return _current_device().allocator.captures_underway > 0


__getattr__ = attribute_of("torch._C")
__all__ = ["Generator"]
