"""Blocks and the pools that keep the free ones."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

from stridescope.engine.devices.allocator_stats import AllocatorStats, PoolStats

PoolId = tuple[int, int]


class Block:
    """A contiguous part of a segment. The blocks of a segment are linked in address order and tile it exactly."""

    __slots__ = (
        "address",
        "allocated",
        "event_count",
        "expandable",
        "mapped",
        "next",
        "pool",
        "prev",
        "requested_size",
        "searches_when_freed",
        "segment_stack",
        "size",
        "stack",
        "storage",
        "stream",
        "stream_uses",
    )

    def __init__(self, address: int, size: int, stream: int, pool: BlockPool) -> None:
        self.address = address
        self.size = size
        self.stream = stream
        self.pool = pool
        self.requested_size = 0
        self.allocated = False
        self.mapped = True
        self.expandable: Reservation | None = None
        self.prev: Block | None = None
        self.next: Block | None = None
        self.event_count = 0
        self.stream_uses: dict[int, None] | None = None
        self.searches_when_freed = 0
        self.storage = 0
        self.stack: Any = None
        self.segment_stack: Any = None

    @property
    def is_split(self) -> bool:
        """Whether the block shares its segment with others."""
        return self.prev is not None or self.next is not None

    @property
    def is_free(self) -> bool:
        """Whether nobody uses the block: not handed out, no event awaited, no stream recorded."""
        return not self.allocated and not self.event_count and not self.stream_uses

    @property
    def state(self) -> str:
        """PyTorch's word for the state, as snapshots carry it."""
        if self.allocated:
            return "active_allocated"
        return "inactive" if self.is_free else "active_pending_free"

    def insert_after(self, neighbour: Block) -> None:
        """Link the block into the list right behind ``neighbour``."""
        self.prev, self.next = neighbour, neighbour.next
        neighbour.next = self
        if self.next is not None:
            self.next.prev = self

    def insert_before(self, neighbour: Block) -> None:
        """Link the block into the list right before ``neighbour``."""
        self.prev, self.next = neighbour.prev, neighbour
        neighbour.prev = self
        if self.prev is not None:
            self.prev.next = self


class Reservation:
    """A reserved range of virtual addresses for one pool and stream, mapped page by page."""

    __slots__ = ("address", "page", "size", "stream")

    def __init__(self, address: int, size: int, page: int, stream: int) -> None:
        self.address = address
        self.size = size
        self.page = page
        self.stream = stream


class BlockPool:
    """The free blocks of one kind (small or large), ordered by stream, size and address.

    ``unmapped`` holds the parts of expandable segments that have no memory behind them, by stream and address.
    """

    __slots__ = ("free", "is_small", "label", "private", "searches", "stats", "unmapped")

    def __init__(
        self,
        is_small: bool,
        stats: tuple[PoolStats, PoolStats],
        private: PrivatePool | None = None,
    ) -> None:
        self.is_small = is_small
        self.stats = stats
        self.private = private
        self.free: list[tuple[int, int, int, Block]] = []
        self.unmapped: list[tuple[int, int, Block]] = []
        self.searches = 0
        kind = "small" if is_small else "large"
        self.label = kind if private is None else f"{kind} {private.id}"

    @property
    def id(self) -> PoolId:
        """The id of the private pool it belongs to; (0, 0) for the default pools."""
        return (0, 0) if self.private is None else self.private.id

    def insert(self, block: Block) -> None:
        """Keep a free block."""
        block.searches_when_freed = self.searches
        insort(self.free, (block.stream, block.size, block.address, block))

    def remove(self, block: Block) -> None:
        """Take a free block out."""
        del self.free[bisect_left(self.free, (block.stream, block.size, block.address))]

    def insert_unmapped(self, block: Block) -> None:
        """Keep an unmapped range."""
        insort(self.unmapped, (block.stream, block.address, block))

    def remove_unmapped(self, block: Block) -> None:
        """Take an unmapped range out."""
        del self.unmapped[bisect_left(self.unmapped, (block.stream, block.address))]

    def blocks(self) -> list[Block]:
        """The free blocks in key order."""
        return [entry[3] for entry in self.free]

    def age(self, block: Block) -> int:
        """How many searches the block has been free for."""
        return self.searches - block.searches_when_freed


class PrivatePool:
    """A pair of pools of its own: a ``MemPool`` or the memory of a CUDA graph."""

    __slots__ = ("allocator", "id", "large", "no_split", "small", "use_count", "use_on_oom")

    def __init__(self, pool_id: PoolId, stats: AllocatorStats) -> None:
        self.id = pool_id
        self.no_split = self.use_on_oom = False
        self.use_count = 1
        self.allocator: Any = None
        self.small = BlockPool(True, stats.of(True), self)
        self.large = BlockPool(False, stats.of(False), self)

    @property
    def free_bytes(self) -> int:
        """The sum of its free blocks."""
        return sum(entry[1] for pool in (self.small, self.large) for entry in pool.free)
