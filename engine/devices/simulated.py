"""A GPU in software: memory of a chosen size, queues with a simulated clock, the CPU's kernels.

It has addresses, streams and times of its own, so that everything the caching allocator and the streams do can be
seen on any machine. It is called simulated wherever its name appears.
"""

from __future__ import annotations

from collections.abc import Callable

from stridescope.engine.devices.address_space import AddressSpace
from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.caching_allocator import CachingAllocator
from stridescope.engine.devices.clock import SimulatedClock, SimulatedEvent
from stridescope.engine.devices.cpp_log import log_warning
from stridescope.engine.devices.cuda_errors import not_while_capturing
from stridescope.engine.devices.cuda_generator import CudaGenerator
from stridescope.engine.devices.device import DeviceProperties
from stridescope.engine.devices.gpu_models import DEFAULT_MODEL, GIB, GPUModel, gpu_model
from stridescope.engine.devices.host_allocator import HostAllocator
from stridescope.engine.devices.streams import current_stream
from stridescope.engine.events import HostWaited, WorkQueued, journal
from stridescope.engine.warn import internal, warn

DEFAULT_SIZE = 8 * GIB
QUIET, WARN, ERROR = range(3)
SYNCHRONIZES = "called a synchronizing CUDA operation"
COPY_KINDS = ("host to device", "device to host", "device to device")


class Launches:
    """Who hears of work that is queued on any device, with the device's index and nanoseconds: a profiler."""

    heard: Callable[[str, int, int], object] | None = None


class SimulatedGPU:
    """One simulated device. ``settings`` are the allocator's options; by default all options are off."""

    simulated = True

    def __init__(
        self,
        size: int = DEFAULT_SIZE,
        model: str = DEFAULT_MODEL,
        index: int = 0,
        settings: AllocatorSettings | None = None,
    ) -> None:
        if size <= 0:
            raise ValueError(f"a simulated GPU needs a size above 0 bytes, not {size}")
        self.index = index
        self.model = gpu_model(model)
        self.properties = _properties(self.model, size)
        self.memory = AddressSpace(size, index)
        self.clock = SimulatedClock()
        settings = settings or AllocatorSettings()
        self.allocator = CachingAllocator(self, settings)
        self.generator = CudaGenerator(self.properties)
        self.sync_debug_mode = QUIET
        self.capture_spoiled = False
        self.host_allocator = HostAllocator(self, self.clock, settings)

    # What the allocator asks

    def cuda_malloc(self, size: int) -> int:
        """Take device memory; raises DeviceOutOfMemory."""
        self.clock.spend(self.model.malloc_ns)
        return self.memory.take(size)

    def cuda_free(self, address: int) -> None:
        """Give device memory back; the device finishes its work first."""
        self.synchronize()
        self.clock.spend(self.model.free_ns)
        self.memory.give_back(address)

    def memory_refused(self, size: int) -> None:
        """Log it, as PyTorch 2.13 does for every refusal, whether the request is helped otherwise or not."""
        free, total = self.memory_info()
        log_warning(
            f"memory allocation failed with OOM on device {self.index} while trying to allocate {size} bytes "
            f"(free: {free}, total: {total}).",
            "CUDACachingAllocator.cpp:3933",
        )

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes."""
        return self.memory.free, self.memory.total

    def reserve_range(self, size: int) -> int:
        """Reserve virtual addresses."""
        return self.memory.reserve(size)

    def release_range(self, address: int) -> None:
        """Give virtual addresses back; they are never used again."""

    def map_pages(self, address: int, size: int, page: int) -> None:
        """Put memory behind reserved addresses; all or nothing. Raises DeviceOutOfMemory."""
        self.clock.spend(self.model.malloc_ns * (size // page))
        self.memory.occupy(size)

    def unmap_pages(self, address: int, size: int) -> None:
        """Take the memory away."""
        self.clock.spend(self.model.free_ns)
        self.memory.vacate(size)

    def record_event(self, stream: int) -> SimulatedEvent:
        """Mark the end of a stream's queue."""
        return SimulatedEvent(self.clock, stream)

    # What scripts and ops ask

    def launch(self, op_name: str, nbytes_read: int, nbytes_written: int, flops: float = 0) -> None:
        """Queue a kernel on the current stream; the host goes on at once."""
        model = self.model
        busy = max((nbytes_read + nbytes_written) / model.memory_bandwidth, flops / model.throughput)
        self._queue(op_name, current_stream(self.index), model.kernel_floor_ns + int(busy))

    def copy(
        self, kind: str, nbytes: int, pinned: bool = False, stream: int | None = None, non_blocking: bool = False
    ) -> None:
        """Queue a copy of one of ``COPY_KINDS``.

        The host waits until it is done, unless it is ``non_blocking`` and the host's memory is pinned.
        """
        model = self.model
        stream = current_stream(self.index) if stream is None else stream
        if kind == "device to device":
            self._queue(kind, stream, model.kernel_floor_ns + int(2 * nbytes / model.memory_bandwidth))
            return
        bandwidth = model.pinned_bandwidth if pinned else model.pageable_bandwidth
        memory = "pinned" if pinned else "pageable"
        self._queue(f"{kind}, {memory}", stream, model.kernel_floor_ns + int(nbytes / bandwidth))
        if not (pinned and non_blocking):
            self.wait_for(stream)

    def sleep(self, cycles: int) -> None:
        """Keep the current stream busy for so many cycles of a clock of 1 GHz."""
        self._queue("sleep", current_stream(self.index), cycles)

    def _queue(self, work: str, stream: int, duration_ns: int) -> None:
        self.clock.spend(self.model.launch_ns)
        begin, end = self.clock.enqueue(stream, duration_ns)
        if Launches.heard is not None:
            Launches.heard(work, self.index, duration_ns)
        _tell(lambda: (WorkQueued.code, f"cuda:{self.index}", stream, work, self.clock.host_ns, begin, end))

    def synchronize_stream(self, stream: int) -> None:
        """Wait until a stream's queue is empty."""
        host, until = self.clock.host_ns, self.clock.end_of(stream)
        if until > host:
            self.clock.wait_until(until)
            _tell(lambda: (HostWaited.code, f"cuda:{self.index}", stream, host, until))

    def wait_for(self, stream: int) -> None:
        """Wait for a stream on behalf of a script: what ``torch.cuda.set_sync_debug_mode`` reports or refuses."""
        self.refuse_while_capturing()
        if self.sync_debug_mode == WARN:
            warn(internal(SYNCHRONIZES, "c10/cuda/CUDAFunctions.cpp:182"))
        elif self.sync_debug_mode == ERROR:
            raise RuntimeError(SYNCHRONIZES)
        self.synchronize_stream(stream)

    def refuse_while_capturing(self) -> None:
        """Called before the host waits or asks: in a graph capture that is an error, which spoils the capture."""
        if self.allocator.captures_underway:
            self.capture_spoiled = True
            raise not_while_capturing()

    def synchronize(self) -> None:
        """Wait until all queues are empty."""
        for stream in self.clock.streams():
            self.synchronize_stream(stream)


def _tell(wire: Callable[[], tuple[object, ...]]) -> None:
    if (emit := journal.emit) is not None:
        emit(wire())


def simulated_name(model: str = DEFAULT_MODEL) -> str:
    """The name by which a device goes: it says that it is simulated."""
    return f"NVIDIA {model} (simulated)"


def _properties(model: GPUModel, size: int) -> DeviceProperties:
    major, minor = model.capability
    return DeviceProperties(
        name=simulated_name(model.name),
        major=major,
        minor=minor,
        total_memory=size,
        multi_processor_count=model.multi_processor_count,
        max_threads_per_multi_processor=model.max_threads_per_multi_processor,
        L2_cache_size=model.l2_cache_size,
    )
