"""``torch.cuda.memory``: what the caching allocator holds, its peaks, its limits, its cache."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from stridescope.engine.devices.allocator_stats import AllocatorStats
from stridescope.engine.devices.caching_allocator import CachingAllocator
from stridescope.engine.devices.registry import allocator_settings, cuda_devices, device_count, is_initialized
from stridescope.engine.devices.snapshot import memory_snapshot as snapshot_of
from stridescope.engine.torch.cuda.device_index import device_index, gpu
from stridescope.engine.torch.cuda.memory_history import (
    _allocation_traceback,
    _dump_snapshot,
    _get_memory_metadata,
    _record_memory_history,
    _set_memory_metadata,
    _snapshot,
)
from stridescope.engine.torch.cuda.memory_pools import MemPool, use_mem_pool
from stridescope.engine.torch.cuda.memory_summary import summary_text
from stridescope.engine.torch.cuda.streams import Stream, current_stream


def _stats(device: Any = None) -> AllocatorStats | None:
    """The statistics of a device; None before the first use of any."""
    if not is_initialized() or not device_count():
        return None
    return gpu(device).allocator.stats


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """All statistics under flat keys such as ``allocated_bytes.all.peak``, sorted; empty before the first use."""
    stats = _stats(device)
    return OrderedDict() if stats is None else stats.flat()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The statistics as nested dicts."""
    stats = _stats(device)
    return {} if stats is None else stats.nested()


def memory_allocated(device: Any = None) -> int:
    """Bytes of the blocks that tensors hold."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most that was ever allocated, or since ``reset_peak_memory_stats``."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds from the device: in use and cached."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most that was ever reserved, or since ``reset_peak_memory_stats``."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning, stacklevel=3)


def memory_cached(device: Any = None) -> int:
    """The old name of ``memory_reserved``."""
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """The old name of ``max_memory_reserved``."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let every peak start again from the current value."""
    gpu(device).allocator.stats.reset_peak()


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Zero the totals (``allocated`` and ``freed``) and the counters."""
    gpu(device).allocator.stats.reset_accumulated()


def _now_resets_everything(name: str) -> None:
    warnings.warn(
        f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
        FutureWarning,
        stacklevel=3,
    )


def reset_max_memory_allocated(device: Any = None) -> None:
    """An old name of ``reset_peak_memory_stats``."""
    _now_resets_everything("reset_max_memory_allocated")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """An old name of ``reset_peak_memory_stats``."""
    _now_resets_everything("reset_max_memory_cached")
    reset_peak_memory_stats(device)


def empty_cache() -> None:
    """Give every cached segment that is wholly free back to its device."""
    if is_initialized():
        for found in cuda_devices():
            found.allocator.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of the device, as its driver sees them."""
    return gpu(device).memory_info()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let the allocator hold at most this part of the device."""
    found = gpu(device)
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    found.allocator.set_memory_fraction(fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of the device that the allocator may hold."""
    return gpu(device).allocator.memory_fraction()


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Take memory by hand; returns its address."""
    index = device_index(device)
    handle = current_stream(index) if stream is None else stream
    if isinstance(handle, Stream):
        handle = handle.cuda_stream
    if not isinstance(handle, int):
        raise TypeError(
            "Invalid type for stream argument, must be `torch.cuda.Stream` or `int` representing a pointer to a "
            "existing stream"
        )
    return gpu(index).allocator.malloc(size, handle).address


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give back memory that was taken by hand."""
    gpu().allocator.free_address(mem_ptr)


def caching_allocator_enable(value: bool = True) -> None:
    """Switch caching on or off; while it is off every request goes straight to the device."""
    for found in cuda_devices():
        found.allocator.caching_enabled = bool(value)


@contextlib.contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """While it is open, every request goes straight to the device."""
    caching_allocator_enable(False)
    try:
        yield
    finally:
        caching_allocator_enable(True)


def memory_snapshot(mempool_id: tuple[int, int] | None = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """The segments of all devices with their blocks; those of one pool when its id is given."""
    del include_traces  # the traces are no part of the segments
    pool_id = None if mempool_id is None or mempool_id == (0, 0) else mempool_id
    return [segment for allocator in _allocators() for segment in snapshot_of(allocator, pool_id)]


def _allocators() -> list[CachingAllocator]:
    return [found.allocator for found in cuda_devices()]


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A printable table of the statistics."""
    index = device_index(device)
    return summary_text(gpu(index).allocator.stats.flat(), index, abbreviated)


def list_gpu_processes(device: Any = None) -> str:
    """A printable list of the processes that use the device: on a simulated one, this one."""
    index = device_index(device)
    free, total = gpu(index).memory_info()
    if free == total:
        return f"GPU:{index}\nno processes are running"
    return f"GPU:{index} (simulated)\nprocess {os.getpid():>10d} uses {(total - free) / (1 << 20):>12.3f} MB GPU memory"


def host_memory_stats() -> OrderedDict[str, int]:
    """The statistics of pinned host memory under flat keys, sorted; empty before the first use."""
    return gpu().host_allocator.flat() if is_initialized() and device_count() else OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """The statistics of pinned host memory as nested dicts."""
    return gpu().host_allocator.nested() if is_initialized() and device_count() else {}


def reset_accumulated_host_memory_stats() -> None:
    """Zero the totals of pinned host memory."""
    gpu().host_allocator.reset_accumulated()


def reset_peak_host_memory_stats() -> None:
    """Let the peaks of pinned host memory start again."""
    gpu().host_allocator.reset_peak()


def _empty_host_cache(device: Any = None) -> None:
    gpu(device).host_allocator.empty_cache()


class CUDAPluggableAllocator:
    """An allocator from a compiled library, which a simulated device cannot call."""

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str) -> None:
        raise NotImplementedError("torch.cuda.memory.CUDAPluggableAllocator is not in Stridescope yet")


def change_current_allocator(allocator: Any) -> None:
    """Take another allocator in place of the native one."""
    raise NotImplementedError("torch.cuda.memory.change_current_allocator is not in Stridescope yet")


def get_allocator_backend() -> str:
    """The allocator in use: always the native one."""
    return "native"


def _set_allocator_settings(env: str) -> None:
    warnings.warn(
        "torch.cuda._set_allocator_settings is deprecated. Use torch._C._accelerator_setAllocatorSettings instead.",
        FutureWarning,
        stacklevel=2,
    )
    allocator_settings().parse(env)


__all__ = [
    "CUDAPluggableAllocator",
    "MemPool",
    "_allocation_traceback",
    "_dump_snapshot",
    "_get_memory_metadata",
    "_record_memory_history",
    "_set_allocator_settings",
    "_set_memory_metadata",
    "_snapshot",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "change_current_allocator",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]
