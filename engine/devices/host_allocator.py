"""The caching allocator of pinned host memory: sizes are powers of two, blocks are never cut."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.allocator_stats import Stat, flatten
from stridescope.engine.devices.clock import SimulatedClock
from stridescope.engine.devices.device import Device, DeviceEvent

PINNED_MEMORY = 0x7000_0000_0000
PAGE = 4096
# Registering pages with the driver costs the host a fixed part and a part per page.
PIN_NS, PIN_PAGE_NS, UNPIN_NS = 50_000, 200, 30_000


class HostBlock:
    """A piece of pinned memory, in use or cached."""

    __slots__ = ("address", "allocated", "event_count", "size", "streams")

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.size = size
        self.allocated = True
        self.event_count = 0
        self.streams: dict[int, None] = {}


class DurationStat:
    """Times in microseconds."""

    def __init__(self) -> None:
        self.total = self.max = self.min = self.count = 0

    def add(self, microseconds: int) -> None:
        """Count one call."""
        self.min = microseconds if self.count == 0 else min(self.min, microseconds)
        self.max = max(self.max, microseconds)
        self.total += microseconds
        self.count += 1

    def as_dict(self) -> dict[str, int]:
        """The members under PyTorch's names."""
        average = self.total // self.count if self.count else 0
        return {"total": self.total, "max": self.max, "min": self.min, "count": self.count, "avg": average}


class HostAllocator:
    """Hands out pinned memory near one device, whose events say when a copy no longer needs it."""

    def __init__(self, device: Device, clock: SimulatedClock, settings: AllocatorSettings) -> None:
        self._device = device
        self._clock = clock
        self._settings = settings
        self._next_address = PINNED_MEMORY
        self._cached: dict[int, list[HostBlock]] = {}
        self._events: deque[tuple[DeviceEvent, HostBlock]] = deque()
        self._stats = {name: Stat() for name in ("allocations", "allocated_bytes", "active_requests", "active_bytes")}
        self._alloc_time, self._free_time = DurationStat(), DurationStat()

    def allocate(self, size: int) -> HostBlock | None:
        """A block of the next power of two, cached or new; None for 0 bytes."""
        if size == 0:
            return None
        self._process_events()
        rounded = self._round(size)
        cached = self._cached.get(rounded)
        block = cached.pop() if cached else self._pin(rounded)
        block.allocated = True
        self._stats["active_requests"].increase(1)
        self._stats["active_bytes"].increase(block.size)
        return block

    def _round(self, size: int) -> int:
        if size > self._settings.pinned_max_round_threshold or size > self._settings.pinned_max_cached_size:
            return size
        return 1 << (size - 1).bit_length()

    def _pin(self, size: int) -> HostBlock:
        duration = PIN_NS + PIN_PAGE_NS * -(-size // PAGE)
        self._clock.spend(duration)
        self._alloc_time.add(duration // 1000)
        block = HostBlock(self._next_address, size)
        self._next_address += -(-size // PAGE) * PAGE
        self._stats["allocations"].increase(1)
        self._stats["allocated_bytes"].increase(size)
        return block

    def record_stream(self, block: HostBlock, stream: int) -> None:
        """A copy on ``stream`` reads or writes the block."""
        block.streams[stream] = None

    def free(self, block: HostBlock) -> None:
        """Take a block back; it is cached as soon as the streams that use it are done."""
        block.allocated = False
        block.event_count = len(block.streams)
        for stream in block.streams:
            self._events.append((self._device.record_event(stream), block))
        block.streams = {}
        if not block.event_count:
            self._cache(block)

    def _cache(self, block: HostBlock) -> None:
        self._stats["active_requests"].decrease(1)
        self._stats["active_bytes"].decrease(block.size)
        if block.size > self._settings.pinned_max_cached_size:
            self._unpin(block)
        else:
            self._cached.setdefault(block.size, []).append(block)

    def _process_events(self) -> None:
        """Take back the blocks whose copies are done, oldest first, up to the first that is not."""
        while self._events and self._events[0][0].query():
            block = self._events.popleft()[1]
            block.event_count -= 1
            if not block.event_count:
                self._cache(block)

    def empty_cache(self) -> None:
        """Unpin every cached block."""
        self._process_events()
        for block in [block for blocks in self._cached.values() for block in blocks]:
            self._unpin(block)
        self._cached.clear()

    def _unpin(self, block: HostBlock) -> None:
        self._clock.spend(UNPIN_NS)
        self._free_time.add(UNPIN_NS // 1000)
        self._stats["allocations"].decrease(1)
        self._stats["allocated_bytes"].decrease(block.size)

    def nested(self) -> dict[str, Any]:
        """The statistics as ``host_memory_stats_as_nested_dict`` gives them."""
        result: dict[str, Any] = {
            "num_host_alloc": self._stats["allocations"].allocated,
            "num_host_free": self._stats["allocations"].freed,
        }
        result |= {name: stat.as_dict() for name, stat in self._stats.items()}
        return result | {"host_alloc_time": self._alloc_time.as_dict(), "host_free_time": self._free_time.as_dict()}

    def flat(self) -> OrderedDict[str, int]:
        """The statistics as ``host_memory_stats`` gives them, sorted by key."""
        return flatten(self.nested())

    def reset_accumulated(self) -> None:
        """Zero the totals."""
        for stat in self._stats.values():
            stat.reset_accumulated()
        self._alloc_time, self._free_time = DurationStat(), DurationStat()

    def reset_peak(self) -> None:
        """Let every peak start again from the current value."""
        for stat in self._stats.values():
            stat.reset_peak()
