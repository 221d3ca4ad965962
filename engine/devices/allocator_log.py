"""Everything the caching allocator tells: events for the recording, entries for the memory history.

The allocator calls one method per decision. With nothing recording and no history such a call is two attribute reads.
"""

from __future__ import annotations

from collections.abc import Callable

from stridescope.engine.devices.block import Block, BlockPool, PoolId
from stridescope.engine.devices.memory_history import ALL, STATE, MemoryHistory, Stack
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
    Journal,
    OutOfMemory,
    SegmentAllocated,
    SegmentFreed,
    SegmentMapped,
    SegmentUnmapped,
    StreamRecorded,
    Wire,
)


class AllocatorLog:
    """The two listeners of one device's allocator."""

    def __init__(self, device: str, journal: Journal) -> None:
        self.device = device
        self.journal = journal
        self.history: MemoryHistory | None = None

    @property
    def emit(self) -> Callable[[Wire], object] | None:
        """Where events go; None while nothing records."""
        return self.journal.emit

    def stack_for_state(self) -> Stack | None:
        """The stack of an allocation, if the history wants it."""
        return None if self.history is None else self.history.gather(STATE)

    def stack_for_free(self) -> Stack | None:
        """The stack of a free, if the history wants it."""
        return None if self.history is None else self.history.gather(ALL)

    def requested(self, size: int, rounded: int, pool: BlockPool, stream: int) -> None:
        """A request arrives."""
        if (emit := self.journal.emit) is not None:
            emit((BlockRequested.code, self.device, size, rounded, pool.label, stream))

    def considered(self, address: int, size: int, verdict: str) -> None:
        """The search looked at a free block."""
        if (emit := self.journal.emit) is not None:
            emit((BlockConsidered.code, self.device, address, size, verdict))

    def segment_allocated(self, block: Block, stack: Stack | None) -> None:
        """A segment was taken from the device."""
        if self.history is not None:
            self.history.record("segment_alloc", block.address, block.size, block.stream, block.pool.id, stack)
        if (emit := self.journal.emit) is not None:
            emit((SegmentAllocated.code, self.device, block.address, block.size, block.pool.label, block.stream))

    def segment_freed(self, block: Block) -> None:
        """A segment goes back to the device."""
        if (history := self.history) is not None:
            stack = history.gather(ALL) or block.segment_stack
            history.record("segment_free", block.address, block.size, block.stream, block.pool.id, stack)
        if (emit := self.journal.emit) is not None:
            emit((SegmentFreed.code, self.device, block.address, block.size))

    def segment_mapped(self, address: int, size: int, block: Block, stack: Stack | None) -> None:
        """A part of an expandable segment got memory."""
        if self.history is not None:
            self.history.record("segment_map", address, size, block.stream, block.pool.id, stack)
        if (emit := self.journal.emit) is not None:
            base = block.expandable.address if block.expandable is not None else 0
            emit((SegmentMapped.code, self.device, address, size, block.pool.label, block.stream, base))

    def segment_unmapped(self, address: int, size: int, stream: int, pool_id: PoolId) -> None:
        """A part of an expandable segment lost its memory."""
        if (history := self.history) is not None:
            history.record("segment_unmap", address, size, stream, pool_id, history.gather(ALL))
        if (emit := self.journal.emit) is not None:
            emit((SegmentUnmapped.code, self.device, address, size))

    def split(self, block: Block, kept: int, reason: str) -> None:
        """A free block is about to be cut."""
        if (emit := self.journal.emit) is not None:
            emit((BlockSplit.code, self.device, block.address, block.size, kept, reason))

    def kept_whole(self, block: Block, reason: str) -> None:
        """A free block is handed out uncut."""
        if (emit := self.journal.emit) is not None:
            emit((BlockKeptWhole.code, self.device, block.address, block.size, reason))

    def allocated(self, block: Block) -> None:
        """A block is handed out."""
        if self.history is not None:
            self.history.record_block("alloc", block, block.stack)
        if (emit := self.journal.emit) is not None:
            size, requested = block.size, block.requested_size
            emit((BlockAllocated.code, self.device, block.address, size, requested, block.stream, block.storage))

    def free_requested(self, block: Block, stack: Stack | None) -> None:
        """The user gives a block back."""
        if self.history is not None:
            self.history.record_block("free_requested", block, stack)

    def stream_recorded(self, block: Block, stream: int) -> None:
        """Another stream uses the block too."""
        if (emit := self.journal.emit) is not None:
            emit((StreamRecorded.code, self.device, block.address, stream))

    def awaits_event(self, block: Block, stream: int, event: int) -> None:
        """A freed block waits for a stream."""
        if (emit := self.journal.emit) is not None:
            emit((BlockAwaitsEvent.code, self.device, block.address, stream, event))

    def event_passed(self, block: Block, stream: int, event: int) -> None:
        """A stream has passed the event of a freed block."""
        if (emit := self.journal.emit) is not None:
            emit((BlockEventPassed.code, self.device, block.address, stream, event))

    def freed(self, block: Block, stack: Stack | None) -> None:
        """A block goes back to the cache; it has not merged yet."""
        if self.history is not None:
            self.history.record_block("free_completed", block, stack)
        if (emit := self.journal.emit) is not None:
            emit((BlockFreed.code, self.device, block.address, block.size))

    def merged(self, block: Block) -> None:
        """A free block has absorbed a neighbour."""
        if (emit := self.journal.emit) is not None:
            emit((BlockMerged.code, self.device, block.address, block.size))

    def refused(self, size: int, reason: str, retry: bool) -> None:
        """The device gave no memory."""
        if (emit := self.journal.emit) is not None:
            emit((DeviceRefused.code, self.device, size, reason, retry))

    def flushed(self, size: int, reason: str) -> None:
        """Cached memory went back to the device."""
        if (emit := self.journal.emit) is not None:
            emit((CacheFlushed.code, self.device, size, reason))

    def out_of_memory(self, free: int, rounded: int, stream: int, pool_id: PoolId, message: str) -> None:
        """A request fails for good."""
        if (history := self.history) is not None:
            history.record("oom", free, rounded, stream, pool_id, history.gather(STATE))
        if (emit := self.journal.emit) is not None:
            emit((OutOfMemory.code, self.device, rounded, message))
