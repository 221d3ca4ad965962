"""The CUDA caching allocator of PyTorch 2.13: one implementation over real and simulated GPUs.

A request is rounded and looks for the smallest free block of its stream (:mod:`.block_search`); when there is none,
memory is taken from the device (:mod:`.segment_source`), and when the device is full the cache is given back and the
device asked again (:mod:`.cache_release`). Freed blocks join their free neighbours and stay cached; those that other
streams still use wait for events (:mod:`.stream_events`). Every decision is told to :class:`.AllocatorLog`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from stridescope.engine.devices import cache_release
from stridescope.engine.devices.allocator_log import AllocatorLog
from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.allocator_stats import AllocatorStats
from stridescope.engine.devices.block import Block, BlockPool, PoolId, PrivatePool
from stridescope.engine.devices.block_search import best_fit, tell_search
from stridescope.engine.devices.block_sizes import ONE_EXABYTE, SMALL_SIZE, round_size, segment_size
from stridescope.engine.devices.block_splitting import should_split, tell_split
from stridescope.engine.devices.coalescing import absorb, cut
from stridescope.engine.devices.device import Device, DeviceOutOfMemory
from stridescope.engine.devices.memory_history import Stack
from stridescope.engine.devices.out_of_memory import OutOfMemoryError, more_than_an_exabyte, out_of_memory_text
from stridescope.engine.devices.pools import DEFAULT_POOL, Pools
from stridescope.engine.devices.segment_source import Request, SegmentSource
from stridescope.engine.devices.stream_events import StreamEvents
from stridescope.engine.events import Journal
from stridescope.engine.events import journal as engine_journal


class CachingAllocator:
    """The allocator of one device.

    Python may run a finaliser, and so a free, in the middle of any call: such a free waits in ``_late`` until the
    call is done.
    """

    def __init__(self, device: Device, settings: AllocatorSettings, journal: Journal = engine_journal) -> None:
        self.device = device
        self.settings = settings
        self.stats = AllocatorStats(settings.max_split_size)
        self.log = AllocatorLog(f"cuda:{device.index}", journal)
        self.pools = Pools(self.stats)
        self.source = SegmentSource(device, settings, self.stats, self.log)
        self.events = StreamEvents(device, self.log, self._complete_after_event)
        self.active: dict[int, Block] = {}
        self.caching_enabled = True
        self.captures_underway = 0
        self.free_memory_callbacks: list[Callable[[], bool]] = []
        self.out_of_memory_observers: list[Callable[[int, int, int, int], None]] = []
        self.uncached = BlockPool(False, self.stats.of(False))
        self.lock = threading.RLock()
        self._busy = False
        self._late: list[Block] = []
        if settings.per_process_memory_fraction < 1.0:
            self.set_memory_fraction(settings.per_process_memory_fraction)

    # Asking for memory

    def malloc(self, size: int, stream: int = 0, storage: int = 0) -> Block:
        """Hand out a block for ``size`` bytes of work on ``stream``; raises OutOfMemoryError.

        A request of 0 bytes gets a block at address 0 that is nowhere counted.
        """
        if size >= ONE_EXABYTE:
            raise more_than_an_exabyte()
        if size == 0:
            return Block(0, 0, stream, self.uncached)
        with self.lock:
            self._busy = True
            try:
                return self._malloc(size, stream, storage) if self.caching_enabled else self._raw_malloc(size, stream)
            finally:
                self._busy = False
                if self._late:
                    self._free_late()

    def _malloc(self, size: int, stream: int, storage: int) -> Block:
        log, settings, events, pools = self.log, self.settings, self.events, self.pools
        stack = None if log.history is None else log.stack_for_state()
        if not self.captures_underway and (events.queues or events.deferred):
            events.process()
        rounded = round_size(size, settings)
        is_small = rounded <= SMALL_SIZE
        pool = pools.choose(is_small, stream) if pools.routes else pools.small if is_small else pools.large
        if log.journal.emit is not None:
            log.requested(size, rounded, pool, stream)
        block = self._search(rounded, stream, pool)
        if block is None:
            request = Request(size, rounded, segment_size(rounded, settings), stream, pool, stack)
            block = self._search_after_callbacks(request) or self._grow(request)
            if block is None:
                raise self._out_of_memory(request)
        block = self._cut(block, rounded)
        block.storage = storage
        block.stack = stack
        self.hand_over(block, size)
        return block

    def _search(self, rounded: int, stream: int, pool: BlockPool) -> Block | None:
        """Take the best cached block out of a pool."""
        if self.source.limit is not None and self.settings.garbage_collection_threshold > 0.0:
            pool.searches += 1  # the clock of the garbage collection
        index = best_fit(pool, rounded, stream, self.settings)
        if self.log.journal.emit is not None:
            tell_search(self.log, pool, rounded, stream, index, self.settings)
        return None if index < 0 else pool.free.pop(index)[3]

    def _search_after_callbacks(self, request: Request) -> Block | None:
        """Let the registered callbacks free something; their frees happen at once."""
        self._busy = False
        freed = [callback() for callback in self.free_memory_callbacks]
        self._busy = True
        return self._search(request.rounded, request.stream, request.pool) if any(freed) else None

    def _grow(self, request: Request) -> Block | None:
        """New memory from the device, giving back cached memory step by step when it has none."""
        source = self.source
        cache_release.collect_garbage(source, self.pools.large)
        if (block := source.allocate(request) or self._borrow(request)) is not None:
            return block
        if cache_release.release_available(source, request) and (block := source.allocate(request)) is not None:
            return block
        if self.captures_underway:
            return None
        cache_release.release_cached(source, self.pools, self.events, DEFAULT_POOL, capturing=False)
        # PyTorch 2.13 does not search the pool again here, although waiting may have freed a fitting block.
        return source.allocate(request, retry=True)

    def _borrow(self, request: Request) -> Block | None:
        """A cached block of a private pool that lends when the device is full."""
        if request.pool.private is not None:
            return None
        for lender in self.pools.lenders():
            pool = lender.small if request.pool.is_small else lender.large
            if (block := self._search(request.rounded, request.stream, pool)) is not None:
                return block
        return None

    def _cut(self, block: Block, size: int) -> Block:
        """Cut a free block to size where the rules want it; the rest goes back to its pool."""
        is_split = block.prev is not None or block.next is not None
        splits = block.size > size and should_split(block, size, self.settings)
        if self.log.journal.emit is not None:
            tell_split(self.log, block, size, splits, self.settings)
        if splits:
            remainder, block = block, cut(block, size)
            if block.expandable is None:
                count, gained = (0, -size) if is_split else (1, remainder.size)
                for column in block.pool.stats:
                    column.change_inactive_split(count, gained)
        elif is_split and block.expandable is None:
            for column in block.pool.stats:
                column.change_inactive_split(-1, -block.size)
        return block

    def hand_over(self, block: Block, requested: int) -> None:
        """A free block, cut to size and out of its pool, becomes the user's."""
        block.allocated = True
        block.requested_size = requested
        log = self.log
        if log.journal.emit is not None or log.history is not None:
            log.allocated(block)
        self.active[block.address] = block
        size = block.size
        for column in block.pool.stats:
            column.hand_out(size, requested)
        if size >= self.settings.max_split_size:
            self.stats.oversize_allocations.increase(1)

    def _out_of_memory(self, request: Request) -> OutOfMemoryError:
        """Count, tell and word the failure."""
        free, total = self.device.memory_info()
        self.stats.num_ooms += 1
        text = out_of_memory_text(
            segment=request.segment,
            device=self.device.index,
            total=total,
            free=free,
            limit=self.source.limit,
            allocated=self.stats.all.allocated_bytes.current,
            reserved=self.stats.all.reserved_bytes.current,
            private=self.pools.private_free_bytes(),
        )
        self.log.out_of_memory(free, request.rounded, request.stream, request.pool.id, text)
        allowed = total if self.source.limit is None else self.source.limit
        for observer in self.out_of_memory_observers:
            observer(self.device.index, request.segment, allowed, free)
        return OutOfMemoryError(text)

    def _raw_malloc(self, size: int, stream: int) -> Block:
        """With caching disabled every request goes straight to the device and no statistic moves."""
        try:
            block = Block(self.device.cuda_malloc(size), size, stream, self.uncached)
        except DeviceOutOfMemory:
            raise OutOfMemoryError("CUDA error: out of memory") from None
        block.allocated = True
        self.active[block.address] = block
        return block

    # Giving memory back

    def free(self, block: Block) -> None:
        """Take back a block; it stays cached. The block of an empty request is ignored."""
        if block.size == 0:
            return
        with self.lock:
            if self._busy:
                self._late.append(block)
                return
            self._busy = True
            try:
                self._free(block)
            finally:
                self._busy = False
                if self._late:
                    self._free_late()

    def free_address(self, address: int) -> None:
        """Take back the block at an address, as ``caching_allocator_delete`` does."""
        if address:
            self.free(self.block_at(address))

    def block_at(self, address: int) -> Block:
        """The block handed out at an address; raises PyTorch's RuntimeError when there is none."""
        block = self.active.get(address)
        if block is None or not block.allocated:
            raise RuntimeError(f"invalid device pointer: {address:#x}")
        return block

    def _free_late(self) -> None:
        """Do the frees that came in the middle of a call, and those that come in the middle of these."""
        self._busy = True
        while self._late:
            self._free(self._late.pop())
        self._busy = False

    def _free(self, block: Block) -> None:
        if not block.allocated:
            raise RuntimeError(f"invalid device pointer: {block.address:#x}")
        block.allocated = False
        if block.pool is self.uncached:
            del self.active[block.address]
            self.device.cuda_free(block.address)
            return
        stack = None
        for column in block.pool.stats:
            column.request_free(block.size)
        if self.log.history is not None:
            stack = self.log.stack_for_free()
            self.log.free_requested(block, stack)
        if block.size >= self.settings.max_split_size:
            self.stats.oversize_allocations.decrease(1)
        if not block.stream_uses:
            self._complete(block, stack)
        elif self.captures_underway:
            self.events.defer(block)
        else:
            self.events.record(block)

    def _complete_after_event(self, block: Block) -> None:
        self._complete(block, self.log.stack_for_free())

    def _complete(self, block: Block, stack: Stack | None) -> None:
        """Return a block to its pool, joined with its free neighbours."""
        log, neighbour, follower = self.log, block.prev, block.next
        if log.journal.emit is not None or log.history is not None:
            log.freed(block, stack)
        block.stack = None
        del self.active[block.address]
        size, requested, pool = block.size, block.requested_size, block.pool
        count = gained = 0
        if neighbour is not None or follower is not None:
            before = absorb(block, neighbour) if neighbour is not None and not neighbour.allocated else 0
            after = absorb(block, follower) if follower is not None and not follower.allocated else 0
            if (before or after) and log.journal.emit is not None:
                log.merged(block)
            still_split = block.prev is not None or block.next is not None
            count = still_split - (before > 0) - (after > 0)
            gained = (block.size if still_split else 0) - before - after
        pool.insert(block)
        for column in pool.stats:
            if block.expandable is None and (count or gained):
                column.change_inactive_split(count, gained)
            column.complete_free(size, requested)

    def record_stream(self, block: Block, stream: int) -> None:
        """Remember that another stream uses the block: freeing it will wait for that stream."""
        if stream == block.stream or block.pool is self.uncached:
            return
        with self.lock:
            if block.stream_uses is None:
                block.stream_uses = {}
            block.stream_uses[stream] = None
            if self.captures_underway:
                self.events.use_while_capturing(block, stream)
            self.log.stream_recorded(block, stream)

    def empty_cache(self, pool_id: PoolId = DEFAULT_POOL) -> None:
        """Give the cached segments back to the device, or those of one private pool without users."""
        with self.lock:
            self._busy = True
            try:
                capturing = self.captures_underway > 0
                cache_release.release_cached(self.source, self.pools, self.events, pool_id, capturing)
            finally:
                self._free_late()

    # Limits and private pools

    def set_memory_fraction(self, fraction: float) -> None:
        """Let the process hold at most this part of the device; 1.0 takes the limit away."""
        total = self.device.properties.total_memory
        self.source.limit = None if fraction >= 1.0 else int(fraction * total)

    def memory_fraction(self) -> float:
        """The fraction in force."""
        limit = self.source.limit
        return 1.0 if limit is None else limit / self.device.properties.total_memory

    def create_pool(
        self, pool_id: PoolId, no_split: bool = False, use_on_oom: bool = False, allocator: Any = None
    ) -> PrivatePool:
        """Make a private pool, with segments from ``allocator`` when one is given."""
        with self.lock:
            pool = self.pools.use(pool_id)
            pool.no_split, pool.use_on_oom, pool.allocator = no_split, use_on_oom, allocator
            return pool

    def begin_allocate_to_pool(self, pool_id: PoolId, accepts: Callable[[int], bool]) -> None:
        """Send the requests that ``accepts`` says yes to, by stream, to a private pool, which gains a user."""
        with self.lock:
            self.pools.use(pool_id)
            self.pools.open_route(pool_id, accepts)

    def end_allocate_to_pool(self, pool_id: PoolId) -> None:
        """Stop sending requests to the pool; its user remains until ``release_pool``."""
        with self.lock:
            self.pools.close_route(pool_id)

    def release_pool(self, pool_id: PoolId) -> None:
        """Take one user of a private pool away."""
        with self.lock:
            self.pools.release(pool_id)
