"""``torch.cuda``: the devices behind ``cuda``, their streams and their memory."""

from __future__ import annotations

from typing import Any

from stridescope.engine.device import device as torch_device
from stridescope.engine.devices.cuda_errors import AcceleratorError
from stridescope.engine.devices.device import DeviceProperties
from stridescope.engine.devices.out_of_memory import OutOfMemoryError
from stridescope.engine.devices.registry import cuda_devices, device_at, device_count, is_initialized
from stridescope.engine.devices.registry import current_device as _current_gpu
from stridescope.engine.devices.streams import set_current_device_index
from stridescope.engine.ops.generator import Generator
from stridescope.engine.ops.old_types import CUDA_TYPES
from stridescope.engine.torch import _not_yet
from stridescope.engine.torch.cuda import memory, nvtx
from stridescope.engine.torch.cuda.device_index import device_index, gpu
from stridescope.engine.torch.cuda.graphs import CUDAGraph, graph
from stridescope.engine.torch.cuda.memory import (
    CUDAPluggableAllocator,
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    change_current_allocator,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from stridescope.engine.torch.cuda.memory_pools import graph_pool_handle
from stridescope.engine.torch.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from stridescope.engine.torch.cuda.runtime import (
    CudaError,
    DeferredCudaCallError,
    check_error,
    clock_rate,
    cudart,
    cudaStatus,
    device_memory_used,
    get_sync_debug_mode,
    memory_usage,
    power_draw,
    set_sync_debug_mode,
    temperature,
    utilization,
)
from stridescope.engine.torch.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)


def is_available() -> bool:
    """Whether there is a ``cuda`` device, real or simulated."""
    return device_count() > 0


def init() -> None:
    """Make the devices now instead of at the first use."""
    _current_gpu()


def current_device() -> int:
    """The index of this thread's current device."""
    return _current_gpu().index


def set_device(device: Any) -> None:
    """Make another device this thread's current one; a negative index changes nothing."""
    index = device_index(device)
    if index >= 0:
        set_current_device_index(device_at(index).index)


class device:
    """``with torch.cuda.device(1):`` makes another device the current one for a while."""

    def __init__(self, device: Any) -> None:
        self.idx = device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = current_device()
        set_device(self.idx)

    def __exit__(self, *failure: object) -> None:
        set_device(self.prev_idx)


class device_of(device):
    """The same for the device of a tensor; a tensor on the CPU changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Name, memory and capability of a device."""
    return gpu(device).properties


def get_device_name(device: Any = None) -> str:
    """The name of a device; a simulated one says so."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether two different devices can read each other's memory."""
    return gpu(device).index != gpu(peer_device).index


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes in bfloat16 (from capability 8.0 on, or by emulation)."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether the current device has TF32 (from capability 8.0 on)."""
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list() -> list[str]:
    """The architectures that kernels were built for: that of the current device."""
    if not is_available():
        return []
    major, minor = get_device_capability()
    return [f"sm_{major}{minor}"]


def get_gencode_flags() -> str:
    """The flags of the CUDA compiler for those architectures."""
    kinds = [name.partition("_")[::2] for name in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{number},code={kind}_{number}" for kind, number in kinds)


def synchronize(device: Any = None) -> None:
    """Wait until all streams of a device are done."""
    found = gpu(device)
    found.refuse_while_capturing()
    found.synchronize()


def _sleep(cycles: int) -> None:
    """Keep the current stream busy for a while: to see what waits for it."""
    _current_gpu().sleep(int(cycles))


def ipc_collect() -> None:
    """Free memory that other processes shared and let go of: there is none here."""
    _current_gpu()


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured on the current stream."""
    return is_initialized() and device_count() > 0 and _current_gpu().allocator.captures_underway > 0


globals().update(CUDA_TYPES)
for _made in (device, device_of):
    _made.__module__ = "torch.cuda"


has_half, has_magma = True, False


def _lazy_init() -> None:
    init()


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    init()
    callable()


def _is_compiled() -> bool:
    return device_count() > 0


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    if allow_cpu and str(device) == "cpu":
        return -1
    return device_index(device, optional=optional)


_missing = _not_yet.missing_from("torch.cuda", __name__)


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return tuple(Generator.over(found.generator, torch_device("cuda", found.index)) for found in cuda_devices())
    return _missing(name)


__all__ = [
    "AcceleratorError",
    "CUDAGraph",
    "CUDAPluggableAllocator",
    "CudaError",
    "DeferredCudaCallError",
    "Event",
    "ExternalStream",
    "MemPool",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "can_device_access_peer",
    "change_current_allocator",
    "check_error",
    "clock_rate",
    "cudaStatus",
    "cudart",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "has_half",
    "has_magma",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "list_gpu_processes",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "memory_usage",
    "nvtx",
    "power_draw",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "synchronize",
    "temperature",
    "use_mem_pool",
    "utilization",
]
