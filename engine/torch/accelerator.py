"""``torch.accelerator``: the ``cuda`` device, real or simulated, under the names that fit every kind of accelerator."""

from __future__ import annotations

from collections import OrderedDict
from types import TracebackType
from typing import Any

from stridescope.engine.device import device as torch_device
from stridescope.engine.devices.registry import device_count as _device_count
from stridescope.engine.dtype import DTYPES
from stridescope.engine.torch import _not_yet, cuda
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.cuda.memory import memory_stats as _memory_stats


def is_available() -> bool:
    """Whether there is a ``cuda`` device."""
    return _device_count() > 0


def device_count() -> int:
    """How many devices there are."""
    return _device_count()


def current_accelerator(check_available: bool = False) -> torch_device | None:
    """``device(type='cuda')``, or None where there is none."""
    del check_available  # a device that was chosen here is one that can be used
    return torch_device("cuda") if _device_count() else None


def _index(device: Any = None) -> int:
    """The index of a device of this accelerator; raises PyTorch's errors."""
    if not _device_count():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if device is not None:
        device = torch_device(device)
        if device.type != "cuda":
            raise ValueError(f"{device.type} doesn't match the current accelerator cuda.")
        if device.index is not None:
            return int(device.index)
    return cuda.current_device()


def current_device_index() -> int:
    """The index of this thread's current device."""
    return _index()


def set_device_index(device: Any, /) -> None:
    """Make another device this thread's current one; None changes nothing."""
    if device is not None:
        cuda.set_device(_index(device))


current_device_idx, set_device_idx = current_device_index, set_device_index


def current_stream(device: Any = None, /) -> Any:
    """The stream that this thread's ops join."""
    return cuda.current_stream(_index(device))


def set_stream(stream: Any) -> None:
    """Let all later ops of this thread join a stream."""
    cuda.set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Wait until all streams of a device are done."""
    cuda.synchronize(_index(device))


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """The dtypes that a device computes in."""
    _index(device)
    return {"supported_dtypes": set(DTYPES)}


class device_index:
    """``with torch.accelerator.device_index(1):`` makes another device the current one for a while."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = _index()
            cuda.set_device(self.idx)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.idx is not None:
            cuda.set_device(self.prev_idx)


def empty_cache() -> None:
    """Give every cached segment that is wholly free back to the device."""
    _index()
    cuda.empty_cache()


def empty_host_cache() -> None:
    """Unpin the cached blocks of pinned host memory."""
    cuda.memory._empty_host_cache(_index())


def memory_stats(device_index: Any = None, /) -> OrderedDict[str, Any]:
    """All statistics of a device's allocator under flat keys."""
    return _memory_stats(_index(device_index))


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes of the blocks that tensors hold."""
    return cuda.memory_allocated(_index(device_index))


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most that was ever allocated, or since the peaks were reset."""
    return cuda.max_memory_allocated(_index(device_index))


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes that the allocator holds from the device."""
    return cuda.memory_reserved(_index(device_index))


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The most that was ever reserved, or since the peaks were reset."""
    return cuda.max_memory_reserved(_index(device_index))


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Zero the totals and the counters."""
    cuda.reset_accumulated_memory_stats(_index(device_index))


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Let every peak start again from the current value."""
    cuda.reset_peak_memory_stats(_index(device_index))


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Free and total bytes of a device."""
    return cuda.mem_get_info(_index(device_index))


Graph = _not_yet.refusing("torch.accelerator", "Graph")


__getattr__ = missing_from("torch.accelerator")
