"""What the caching allocator looks like at one step, folded from the memory events.

``AllocatorState.apply(step, wire)`` takes every event of a run in its wire form and ignores those of other families.
The curve of the whole run is the recording's to tell (:mod:`stridescope.engine.recording.curve`).
Blocks tile their segment, so the next block of a segment begins where the one before it ends: no links are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from stridescope.engine.events import (
    BlockAllocated,
    BlockAwaitsEvent,
    BlockConsidered,
    BlockEventPassed,
    BlockFreed,
    BlockKeptWhole,
    BlockMerged,
    BlockRequested,
    BlockSplit,
    CacheFlushed,
    DeviceRefused,
    OutOfMemory,
    SegmentAllocated,
    SegmentFreed,
    SegmentMapped,
    SegmentUnmapped,
    StorageMade,
    StreamRecorded,
    Wire,
)

_QUANTITIES = (
    "allocation",
    "allocated_bytes",
    "active",
    "active_bytes",
    "requested_bytes",
    "segment",
    "reserved_bytes",
)
_MEMBERS = {name: (f"{name}.current", f"{name}.peak", f"{name}.allocated", f"{name}.freed") for name in _QUANTITIES}


@dataclasses.dataclass(slots=True)
class SegmentState:
    """Memory held from the device; of an expandable segment, one mapped stretch."""

    device: str
    address: int
    size: int
    pool: str
    stream: int
    born: int
    reservation: int = 0

    @property
    def is_expandable(self) -> bool:
        """Whether it is a mapped stretch of a reserved range."""
        return self.reservation != 0


@dataclasses.dataclass(slots=True)
class BlockState:
    """A part of a segment. ``state`` is "inactive", "active_allocated" or "active_pending_free"."""

    address: int
    size: int
    stream: int
    state: str = "inactive"
    requested: int = 0
    storage: int = 0
    born: int = -1
    also_used_by: tuple[int, ...] = ()


@dataclasses.dataclass(slots=True)
class PendingEvent:
    """The block at ``address`` is freed but waits until ``stream`` passes the event; event 0 is a graph capture."""

    address: int
    stream: int
    event: int


@dataclasses.dataclass(slots=True)
class Considered:
    """A free block that the search looked at, and what became of it."""

    address: int
    size: int
    verdict: str


@dataclasses.dataclass(slots=True)
class RequestState:
    """The last request: what was asked, what was looked at, and how it ended."""

    step: int
    device: str
    size: int
    rounded: int
    pool: str
    stream: int
    considered: list[Considered] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    address: int = 0
    error: str = ""


@dataclasses.dataclass(slots=True)
class AllocatorState:
    """Segments and blocks by address, and the numbers that follow from them."""

    segments: dict[int, SegmentState] = dataclasses.field(default_factory=dict)
    blocks: dict[int, BlockState] = dataclasses.field(default_factory=dict)
    pending: list[PendingEvent] = dataclasses.field(default_factory=list)
    statistics: dict[str, int] = dataclasses.field(default_factory=dict)
    request: RequestState | None = None

    def apply(self, step: int, wire: Wire) -> None:
        """Move on by one event."""
        if (handler := _HANDLERS.get(wire[0])) is not None:
            handler(self, step, *wire[1:])

    def blocks_of(self, segment: SegmentState) -> list[BlockState]:
        """The blocks of a segment in address order."""
        blocks, address, end = [], segment.address, segment.address + segment.size
        while address < end:
            block = self.blocks[address]
            blocks.append(block)
            address += block.size
        return blocks

    def segment_of(self, address: int) -> SegmentState | None:
        """The segment that holds an address, or None."""
        return next((s for s in self.segments.values() if s.address <= address < s.address + s.size), None)

    def count(self, name: str) -> int:
        """A statistic by its short name, such as ``allocated_bytes.peak``; 0 when it never moved."""
        return self.statistics.get(name, 0)

    def inactive_split(self) -> tuple[int, int]:
        """Number and bytes of the free blocks that share their segment: what empty_cache cannot give back."""
        sizes = []
        for segment in self.segments.values():
            if not segment.is_expandable and len(blocks := self.blocks_of(segment)) > 1:
                sizes += [block.size for block in blocks if block.state == "inactive"]
        return len(sizes), sum(sizes)

    def _move(self, quantity: str, amount: int) -> None:
        statistics = self.statistics
        current_key, peak_key, gained_key, lost_key = _MEMBERS[quantity]
        current = statistics.get(current_key, 0) + amount
        statistics[current_key] = current
        if amount < 0:
            statistics[lost_key] = statistics.get(lost_key, 0) - amount
            return
        statistics[gained_key] = statistics.get(gained_key, 0) + amount
        if current > statistics.get(peak_key, 0):
            statistics[peak_key] = current

    def _tally(self, name: str) -> None:
        self.statistics[name] = self.statistics.get(name, 0) + 1

    def _segment_allocated(self, step: int, device: str, address: int, size: int, pool: str, stream: int) -> None:
        self.segments[address] = SegmentState(device, address, size, pool, stream, step)
        self.blocks[address] = BlockState(address, size, stream)
        self._move("segment", 1)
        self._move("reserved_bytes", size)
        self._tally("num_device_alloc")

    def _segment_freed(self, step: int, device: str, address: int, size: int) -> None:
        del self.segments[address], self.blocks[address]
        self._move("segment", -1)
        self._move("reserved_bytes", -size)
        self._tally("num_device_free")

    def _segment_mapped(
        self, step: int, device: str, address: int, size: int, pool: str, stream: int, reservation: int
    ) -> None:
        self.blocks[address] = BlockState(address, size, stream)
        self._join_stretches(SegmentState(device, address, size, pool, stream, step, reservation))
        self._move("reserved_bytes", size)
        self._tally("num_device_alloc")

    def _join_stretches(self, stretch: SegmentState) -> None:
        """Add a mapped stretch; it becomes one with the stretches of the same reservation that it touches."""
        end = stretch.address + stretch.size
        for other in list(self.segments.values()):
            if other.reservation != stretch.reservation:
                continue
            if other.address + other.size == stretch.address or other.address == end:
                del self.segments[other.address]
                stretch.address = min(stretch.address, other.address)
                stretch.size += other.size
                stretch.born = min(stretch.born, other.born)
        self.segments[stretch.address] = stretch

    def _segment_unmapped(self, step: int, device: str, address: int, size: int) -> None:
        segment = self.segment_of(address)
        if segment is None:
            return
        self._cut_out(address, size)
        del self.segments[segment.address]
        left, right = address - segment.address, segment.address + segment.size - address - size
        if left:
            self.segments[segment.address] = dataclasses.replace(segment, size=left)
        if right:
            self.segments[address + size] = dataclasses.replace(segment, address=address + size, size=right)
        self._move("reserved_bytes", -size)
        self._tally("num_device_free")

    def _cut_out(self, address: int, size: int) -> None:
        """Take the range out of the free block that covers it; what lies before and after stays free."""
        block = next(b for b in self.blocks.values() if b.address <= address < b.address + b.size)
        end, tail = block.address + block.size, address + size
        del self.blocks[block.address]
        for begin, stop in ((block.address, address), (tail, end)):
            if stop > begin:
                self.blocks[begin] = BlockState(begin, stop - begin, block.stream)

    def _block_requested(self, step: int, device: str, size: int, rounded: int, pool: str, stream: int) -> None:
        self.request = RequestState(step, device, size, rounded, pool, stream)

    def _block_considered(self, step: int, device: str, address: int, size: int, verdict: str) -> None:
        if self.request is not None:
            self.request.considered.append(Considered(address, size, verdict))

    def _note(self, text: str) -> None:
        if self.request is not None:
            self.request.notes.append(text)

    def _block_split(self, step: int, device: str, address: int, size: int, kept: int, reason: str) -> None:
        block = self.blocks[address]
        block.size = kept
        self.blocks[address + kept] = BlockState(address + kept, size - kept, block.stream)
        self._note(f"split: {reason}")

    def _block_kept_whole(self, step: int, device: str, address: int, size: int, reason: str) -> None:
        self._note(f"not split: {reason}")

    def _block_allocated(
        self, step: int, device: str, address: int, size: int, requested: int, stream: int, storage: int
    ) -> None:
        self.blocks[address] = BlockState(address, size, stream, "active_allocated", requested, storage, step)
        if self.request is not None:
            self.request.address = address
        self._move("allocation", 1)
        self._move("allocated_bytes", size)
        self._move("active", 1)
        self._move("active_bytes", size)
        self._move("requested_bytes", requested)

    def _stop_using(self, block: BlockState) -> None:
        if block.state == "active_allocated":
            self._move("allocation", -1)
            self._move("allocated_bytes", -block.size)

    def _block_awaits_event(self, step: int, device: str, address: int, stream: int, event: int) -> None:
        block = self.blocks[address]
        self._stop_using(block)
        block.state = "active_pending_free"
        self.pending = [p for p in self.pending if (p.address, p.event) != (address, 0)]
        self.pending.append(PendingEvent(address, stream, event))

    def _block_event_passed(self, step: int, device: str, address: int, stream: int, event: int) -> None:
        self.pending = [p for p in self.pending if (p.address, p.stream, p.event) != (address, stream, event)]

    def _block_freed(self, step: int, device: str, address: int, size: int) -> None:
        block = self.blocks[address]
        self._stop_using(block)
        self._move("active", -1)
        self._move("active_bytes", -size)
        self._move("requested_bytes", -block.requested)
        self.blocks[address] = BlockState(address, size, block.stream)
        if self.pending:
            self.pending = [p for p in self.pending if p.address != address]

    def _block_merged(self, step: int, device: str, address: int, size: int) -> None:
        first, inner, end = self.blocks[address], address, address + size
        while inner < end:
            inner += self.blocks.pop(inner).size
        first.size = size
        self.blocks[address] = first

    def _stream_recorded(self, step: int, device: str, address: int, stream: int) -> None:
        block = self.blocks[address]
        if stream not in block.also_used_by:
            block.also_used_by = (*block.also_used_by, stream)

    def _cache_flushed(self, step: int, device: str, freed: int, reason: str) -> None:
        request = self.request
        if reason == "cache released" and request is not None and not request.address and not request.error:
            self._tally("num_alloc_retries")  # the device refused, and will be asked once more
        self._note(f"{reason}: {freed} bytes given back")

    def _device_refused(self, step: int, device: str, size: int, reason: str, retry: bool) -> None:
        self._note(f"the device gives no segment of {size} bytes: {reason}")

    def _out_of_memory(self, step: int, device: str, requested: int, message: str) -> None:
        self._tally("num_ooms")
        if self.request is not None:
            self.request.error = message

    def _storage_made(self, step: int, storage: int, nbytes: int, device: str, address: int) -> None:
        block = self.blocks.get(address)
        if block is not None and block.state == "active_allocated":
            block.storage = storage


_HANDLERS: dict[int, Callable[..., None]] = {
    BlockAllocated.code: AllocatorState._block_allocated,
    BlockAwaitsEvent.code: AllocatorState._block_awaits_event,
    BlockConsidered.code: AllocatorState._block_considered,
    BlockEventPassed.code: AllocatorState._block_event_passed,
    BlockFreed.code: AllocatorState._block_freed,
    BlockKeptWhole.code: AllocatorState._block_kept_whole,
    BlockMerged.code: AllocatorState._block_merged,
    BlockRequested.code: AllocatorState._block_requested,
    BlockSplit.code: AllocatorState._block_split,
    CacheFlushed.code: AllocatorState._cache_flushed,
    DeviceRefused.code: AllocatorState._device_refused,
    OutOfMemory.code: AllocatorState._out_of_memory,
    SegmentAllocated.code: AllocatorState._segment_allocated,
    SegmentFreed.code: AllocatorState._segment_freed,
    SegmentMapped.code: AllocatorState._segment_mapped,
    SegmentUnmapped.code: AllocatorState._segment_unmapped,
    StorageMade.code: AllocatorState._storage_made,
    StreamRecorded.code: AllocatorState._stream_recorded,
}
