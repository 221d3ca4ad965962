"""Whether a free block that is larger than the request is cut, and why."""

from __future__ import annotations

from stridescope.engine.devices.allocator_log import AllocatorLog
from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.block import Block
from stridescope.engine.devices.block_sizes import MINIMUM_BLOCK, SMALL_SIZE


def should_split(block: Block, size: int, settings: AllocatorSettings) -> bool:
    """Whether ``size`` bytes are cut off the block."""
    rest, pool = block.size - size, block.pool
    if pool.private is not None and pool.private.no_split:
        return False
    if pool.is_small or settings.expandable_segments:
        return rest >= MINIMUM_BLOCK
    return size < settings.max_split_size and rest > SMALL_SIZE


def tell_split(log: AllocatorLog, block: Block, size: int, splits: bool, settings: AllocatorSettings) -> None:
    """Say what was decided, and by which rule."""
    rest, pool = block.size - size, block.pool
    fine = pool.is_small or settings.expandable_segments
    least = f"from {MINIMUM_BLOCK} bytes on" if fine else f"above {SMALL_SIZE} bytes"
    if splits:
        log.split(block, size, f"{rest} bytes are left, a block of their own {least}")
    elif rest == 0:
        log.kept_whole(block, "it fits exactly")
    elif pool.private is not None and pool.private.no_split:
        log.kept_whole(block, "the pool does not split")
    elif not fine and size >= settings.max_split_size:
        log.kept_whole(block, f"blocks of max_split_size ({settings.max_split_size} bytes) and more are not cut")
    else:
        log.kept_whole(block, f"{rest} bytes would be left; they are a block of their own only {least}")
