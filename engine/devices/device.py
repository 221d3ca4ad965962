"""What the caching allocator and the kernels ask of a GPU, real or simulated."""

from __future__ import annotations

import dataclasses
from typing import Protocol


class DeviceOutOfMemory(Exception):
    """The device has no room for the request: cudaErrorMemoryAllocation."""


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class DeviceProperties:
    """What ``torch.cuda.get_device_properties`` tells."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    max_threads_per_multi_processor: int = 1536
    warp_size: int = 32
    regs_per_multiprocessor: int = 65536
    L2_cache_size: int = 0
    is_integrated: int = 0
    is_multi_gpu_board: int = 0

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


class DeviceEvent(Protocol):
    """A mark in a stream."""

    def query(self) -> bool:
        """Whether the stream has passed the mark."""

    def synchronize(self) -> None:
        """Wait until it has."""


class Device(Protocol):
    """The raw device beneath the caching allocator."""

    index: int
    simulated: bool
    properties: DeviceProperties

    def cuda_malloc(self, size: int) -> int:
        """Take ``size`` bytes; returns the address or raises DeviceOutOfMemory."""

    def cuda_free(self, address: int) -> None:
        """Give memory back; the device waits for its work first."""

    def memory_refused(self, size: int) -> None:
        """Told of every request that the device had no memory for."""

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes, as the driver sees them."""

    def reserve_range(self, size: int) -> int:
        """Reserve virtual addresses without memory."""

    def release_range(self, address: int) -> None:
        """Give virtual addresses back."""

    def map_pages(self, address: int, size: int, page: int) -> None:
        """Put memory behind a reserved range, page by page; all or nothing. Raises DeviceOutOfMemory."""

    def unmap_pages(self, address: int, size: int) -> None:
        """Take the memory from a part of a reserved range."""

    def record_event(self, stream: int) -> DeviceEvent:
        """Mark the present end of a stream's queue."""

    def synchronize_stream(self, stream: int) -> None:
        """Wait until a stream's queue is empty."""

    def synchronize(self) -> None:
        """Wait until all queues are empty."""
