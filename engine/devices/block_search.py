"""Best fit: which cached block serves a request, and why not the others."""

from __future__ import annotations

from bisect import bisect_left

from stridescope.engine.devices.allocator_log import AllocatorLog
from stridescope.engine.devices.allocator_settings import UNLIMITED, AllocatorSettings
from stridescope.engine.devices.block import Block, BlockPool

# How many of the blocks that did not fit are told of, for each reason: the nearest ones say enough.
TOLD_PER_REASON = 4
TOO_SMALL_TOLD = 2


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
    free = pool.free
    if not free:
        return
    fits = bisect_left(free, (stream, size))
    for owner, block_size, address, _ in free[max(fits - TOO_SMALL_TOLD, 0) : fits]:
        if owner == stream:
            log.considered(address, block_size, f"too small by {size - block_size} bytes")
    if free[0][0] != stream or free[-1][0] != stream:
        _tell_other_streams(log, pool, size, stream)
    if chosen == fits:
        _, block_size, address, _ = free[fits]
        log.considered(address, block_size, "chosen: the smallest that is large enough")
    else:
        _tell_passed_over(log, pool, size, stream, chosen, limits, fits)


def _tell_other_streams(log: AllocatorLog, pool: BlockPool, size: int, stream: int) -> None:
    """Say which blocks would be large enough but belong to other streams: the smallest of each."""
    free, first, told = pool.free, 0, 0
    while first < len(free) and told < TOLD_PER_REASON:
        owner = free[first][0]
        end = bisect_left(free, (owner + 1,), first)
        fits = bisect_left(free, (owner, size), first, end)
        if owner != stream and fits < end:
            _, block_size, address, _ = free[fits]
            log.considered(address, block_size, f"it belongs to stream {owner}, the request to stream {stream}")
            told += 1
        first = end


def _tell_passed_over(
    log: AllocatorLog, pool: BlockPool, size: int, stream: int, chosen: int, limits: AllocatorSettings, first: int
) -> None:
    """Say what became of the blocks that are large enough, up to the chosen or refused one."""
    last = chosen if chosen >= 0 else first
    for index in range(first, min(last + 1, len(pool.free))):
        owner, block_size, address, block = pool.free[index]
        if owner != stream:
            return
        if index == chosen:
            why = "it has less room to grow" if limits.expandable_segments else "the smallest that is not expandable"
            log.considered(address, block_size, f"chosen: {why}")
        elif block.expandable is not None and not limits.expandable_segments:
            log.considered(address, block_size, "it is expandable, and expandable_segments is off")
        elif chosen >= 0:
            log.considered(address, block_size, f"passed over: it can still grow to {reach(block)} bytes")
        else:
            log.considered(address, block_size, f"refused: {oversize_refusal(size, block_size, limits)}")
