"""The three ways in which cached memory goes back to the device."""

from __future__ import annotations

from bisect import bisect_left

from stridescope.engine.devices.allocator_settings import UNLIMITED
from stridescope.engine.devices.block import Block, BlockPool, PoolId
from stridescope.engine.devices.pools import DEFAULT_POOL, Pools
from stridescope.engine.devices.segment_source import Request, SegmentSource
from stridescope.engine.devices.stream_events import StreamEvents


def collect_garbage(source: SegmentSource, pool: BlockPool) -> None:
    """Release the oldest whole free blocks of the large pool until the threshold is met, without waiting for anything.

    A pass releases every block that is at least as old as the average, and never stops at the target.
    """
    if source.limit is None or source.settings.garbage_collection_threshold <= 0.0:
        return
    target = source.reserved - int(source.settings.garbage_collection_threshold * source.limit)
    ages = {block: pool.age(block) for block in pool.blocks() if not block.is_split}
    released, progress = 0, True
    while target > 0 and released < target and progress and ages:
        threshold = sum(ages.values()) / len(ages)
        old = [block for block in ages if block.expandable is None and ages[block] >= threshold]
        progress = bool(old)
        for block in old:
            del ages[block]
            released += source.release(block)
    if released:
        source.log.flushed(released, "garbage collection")


def release_available(source: SegmentSource, request: Request) -> bool:
    """With ``max_split_size`` set: release just enough oversize blocks; True if that could suffice."""
    limit = source.settings.max_split_size
    if limit == UNLIMITED:
        return False
    wanted = max(request.rounded, limit)
    free = request.pool.free
    index = bisect_left(free, (request.stream, wanted))
    if index < len(free) and free[index][0] == request.stream and _is_whole(free[index][3]):
        released = source.release(free[index][3])
    else:
        released = _release_backwards(source, request, index - 1, wanted, limit)
    if released:
        source.log.flushed(released, "oversize blocks released")
    return released >= wanted


def _is_whole(block: Block) -> bool:
    """Whether the block is a segment of its own. Part of one it can be only if max_split_size was lowered later."""
    return block.expandable is None and not block.is_split


def _release_backwards(source: SegmentSource, request: Request, index: int, wanted: int, limit: int) -> int:
    """Release oversize blocks of the stream, largest first, until they add up."""
    candidates: list[Block] = []
    for stream, size, _, block in reversed(request.pool.free[: index + 1]):
        if stream != request.stream or size < limit:
            break
        if _is_whole(block):
            candidates.append(block)
    released = 0
    for block in candidates:
        if released >= wanted:
            break
        released += source.release(block)
    return released


def release_cached(source: SegmentSource, pools: Pools, events: StreamEvents, pool_id: PoolId, capturing: bool) -> None:
    """Release every cached segment: of the default pools and of the private ones without users, or of one of these."""
    before = source.reserved
    if pool_id == DEFAULT_POOL and not capturing:
        source.stats.num_sync_all_streams += 1
        events.synchronize()
        source.release_all(pools.large)
        source.release_all(pools.small)
    for freeable in list(pools.freeable.values()):
        if pool_id not in (DEFAULT_POOL, freeable.id):
            continue
        if pool_id == freeable.id:
            source.stats.num_sync_all_streams += 1
            events.synchronize(pool_id)
        source.release_all(freeable.small)
        source.release_all(freeable.large)
        if source.reserved_by(freeable.id) == 0:
            pools.forget(freeable.id)
    source.log.flushed(before - source.reserved, "cache released")
