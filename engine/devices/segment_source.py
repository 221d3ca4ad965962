"""Taking segments from the device and giving them back, with the limits and the counts that go with it."""

from __future__ import annotations

import dataclasses
from typing import Any

from stridescope.engine.devices.allocator_log import AllocatorLog
from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.allocator_stats import AllocatorStats
from stridescope.engine.devices.block import Block, BlockPool, PoolId, PrivatePool
from stridescope.engine.devices.device import Device, DeviceOutOfMemory
from stridescope.engine.devices.expandable_segments import ExpandableSegments
from stridescope.engine.devices.out_of_memory import rejection


@dataclasses.dataclass(slots=True)
class Request:
    """One call of malloc: what was asked, what it became, and where it looks."""

    size: int
    rounded: int
    segment: int
    stream: int
    pool: BlockPool
    stack: Any


class SegmentSource:
    """The allocator's side of the device. ``reserved`` is what it holds, ``limit`` what it may hold."""

    def __init__(self, device: Device, settings: AllocatorSettings, stats: AllocatorStats, log: AllocatorLog) -> None:
        self.device = device
        self.settings = settings
        self.stats = stats
        self.log = log
        self.limit: int | None = None
        self.reserved = 0
        self.expandable = ExpandableSegments(device, self.account, log)

    def allocate(self, request: Request, retry: bool = False) -> Block | None:
        """A new free block that is large enough and in no pool, or None when there is no memory."""
        if retry:
            self.stats.num_alloc_retries += 1
        if self.limit is not None and self.reserved + request.segment > self.limit:
            self.log.refused(request.segment, f"the process may hold {self.limit} bytes", retry)
            return None
        self._reject_early(request)
        private = request.pool.private
        try:
            if self.settings.expandable_segments and (private is None or private.allocator is None):
                page = self._page(request.pool)
                return self.expandable.allocate(request.pool, request.stream, request.rounded, page, request.stack)
            return self._open_segment(request, private)
        except DeviceOutOfMemory:
            self.device.memory_refused(request.segment)
            self.log.refused(request.segment, "out of memory", retry)
            return None

    def _page(self, pool: BlockPool) -> int:
        return 2 << 20 if pool.is_small else self.settings.large_segment_size

    def _reject_early(self, request: Request) -> None:
        if not self.settings.throw_on_cudamalloc_oom:
            return
        allowed = int(self.settings.per_process_memory_fraction * self.device.properties.total_memory)
        if self.reserved + request.segment > allowed:
            self.stats.num_oom_rejections += 1
            raise rejection(request.segment)

    def _open_segment(self, request: Request, private: PrivatePool | None) -> Block:
        address = self._device_malloc(request, private)
        block = Block(address, request.segment, request.stream, request.pool)
        block.segment_stack = request.stack
        for column in request.pool.stats:
            column.segment.increase(1)
        if block.size >= self.settings.max_split_size:
            self.stats.oversize_segments.increase(1)
        self.account(block.size, request.pool)
        self.log.segment_allocated(block, request.stack)
        return block

    def _device_malloc(self, request: Request, private: PrivatePool | None) -> int:
        if private is None or private.allocator is None:
            return self.device.cuda_malloc(request.segment)
        address = int(private.allocator.malloc(request.segment, self.device.index, request.stream))
        if address == 0:
            raise DeviceOutOfMemory
        return address

    def account(self, change: int, pool: BlockPool) -> None:
        """Count bytes won from the device, or given back when negative."""
        self.reserved += change
        self.stats.reserve(change, pool.is_small, None if pool.private is None else pool.private.id)
        if change > 0:
            self.stats.num_device_alloc += 1
        else:
            self.stats.num_device_free += 1

    def reserved_by(self, pool_id: PoolId) -> int:
        """The bytes that one private pool holds."""
        private = self.stats.by_private_pool.get(pool_id)
        return 0 if private is None else private.all.current

    def release(self, block: Block) -> int:
        """Give a free segment of one block back; returns its bytes."""
        pool = block.pool
        pool.remove(block)
        self.log.segment_freed(block)
        if pool.private is not None and pool.private.allocator is not None:
            pool.private.allocator.free(block.address, block.size, self.device.index, block.stream)
        else:
            self.device.cuda_free(block.address)
        for column in pool.stats:
            column.segment.decrease(1)
        if block.size >= self.settings.max_split_size:
            self.stats.oversize_segments.decrease(1)
        self.account(-block.size, pool)
        return block.size

    def release_all(self, pool: BlockPool) -> None:
        """Give back what a pool caches: whole segments first, then the whole pages of expandable ones."""
        blocks = pool.blocks()
        for block in blocks:
            if block.expandable is None and not block.is_split:
                self.release(block)
        for block in blocks:
            if block.expandable is not None:
                self.expandable.release(block)
