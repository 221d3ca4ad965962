"""Best fit: which cached block serves a request, and why not the others."""

from __future__ import annotations

from bisect import bisect_left

from stridescope.engine.devices.allocator_log import AllocatorLog
from stridescope.engine.devices.allocator_settings import UNLIMITED, AllocatorSettings
from stridescope.engine.devices.block import Block, BlockPool

# How many of the blocks that did not fit are told of, for each reason: the nearest ones say enough.
TOLD_PER_REASON = 4


def best_fit(pool: BlockPool, size: int, stream: int, settings: AllocatorSettings) -> int:
    """The position in ``pool.free`` of the block that serves, or -1.

    It is the smallest block of the same stream that is large enough, the lowest address among equals.
    """
    free = pool.free
    index = bisect_left(free, (stream, size))
    if index == len(free) or free[index][0] != stream:
        return -1
    if free[index][3].expandable is not None:
        index = _prefer_closed_holes(pool, index) if settings.expandable_segments else _skip_expandable(pool, index)
    if index < 0 or (settings.max_split_size != UNLIMITED and oversize_refusal(size, free[index][1], settings)):
        return -1
    return index


def reach(block: Block) -> int:
    """How large an expandable block could become: itself and the unmapped space behind it."""
    follower = block.next
    return block.size + (follower.size if follower is not None and not follower.mapped else 0)


def _prefer_closed_holes(pool: BlockPool, index: int) -> int:
    """Move on while the next block of the stream has less room to grow: the growing tail comes last."""
    free, stream = pool.free, pool.free[index][0]
    while free[index][3].expandable is not None and index + 1 < len(free) and free[index + 1][0] == stream:
        if reach(free[index + 1][3]) >= reach(free[index][3]):
            break
        index += 1
    return index


def _skip_expandable(pool: BlockPool, index: int) -> int:
    """The next block of the stream that is not expandable: the option is off now, so the others must rest."""
    free, stream = pool.free, pool.free[index][0]
    while index < len(free) and free[index][0] == stream:
        if free[index][3].expandable is None:
            return index
        index += 1
    return -1


def oversize_refusal(size: int, block_size: int, settings: AllocatorSettings) -> str:
    """Why ``max_split_size`` forbids the block, or nothing."""
    limit = settings.max_split_size
    if size < limit <= block_size:
        return f"at {limit} bytes or more it is kept whole for requests of that size"
    if size >= limit and block_size >= size + settings.non_split_rounding:
        return f"it exceeds the request by {settings.non_split_rounding} bytes or more, and may not be cut"
    return ""


def tell_search(
    log: AllocatorLog, pool: BlockPool, size: int, stream: int, chosen: int, limits: AllocatorSettings
) -> None:
    """Say what the search saw: the nearest blocks that are too small, other streams' blocks, and the chosen one."""
    fits = bisect_left(pool.free, (stream, size))
    for entry in reversed(pool.free[max(fits - TOLD_PER_REASON, 0) : fits]):
        if entry[0] == stream:
            log.considered(entry[2], entry[1], f"too small by {size - entry[1]} bytes")
    others = [entry for entry in pool.free if entry[0] != stream and entry[1] >= size]
    for entry in others[:TOLD_PER_REASON]:
        log.considered(entry[2], entry[1], f"it belongs to stream {entry[0]}, the request to stream {stream}")
    _tell_fitting(log, pool, size, stream, chosen, limits, fits)


def _tell_fitting(
    log: AllocatorLog, pool: BlockPool, size: int, stream: int, chosen: int, limits: AllocatorSettings, first: int
) -> None:
    """Say what became of the blocks that are large enough, up to the chosen or refused one."""
    last = chosen if chosen >= 0 else first
    for index in range(first, min(last + 1, len(pool.free))):
        owner, block_size, address, block = pool.free[index]
        if owner != stream:
            return
        if index == chosen:
            log.considered(address, block_size, "chosen: the smallest that is large enough")
        elif block.expandable is not None and not limits.expandable_segments:
            log.considered(address, block_size, "it is expandable, and expandable_segments is off")
        elif chosen >= 0:
            log.considered(address, block_size, f"passed over: it can still grow to {reach(block)} bytes")
        else:
            log.considered(address, block_size, f"refused: {oversize_refusal(size, block_size, limits)}")
