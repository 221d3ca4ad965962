"""Memory snapshots of our own allocator, in PyTorch's form."""

from __future__ import annotations

from typing import Any

from stridescope.engine.devices.block import Block, PoolId
from stridescope.engine.devices.caching_allocator import CachingAllocator
from stridescope.engine.devices.memory_history import frames_of


def memory_snapshot(allocator: CachingAllocator, pool_id: PoolId | None = None) -> list[dict[str, Any]]:
    """The segments of one device, sorted by address; only those of one pool when its id is given."""
    with allocator.lock:
        blocks = [block for block in allocator.active.values() if block.pool is not allocator.uncached]
        blocks += allocator.pools.free_blocks()
        heads = [block for block in blocks if block.prev is None or not block.prev.mapped]
        wanted = [head for head in heads if pool_id is None or head.pool.id == pool_id]
        return [_segment(allocator.device.index, head) for head in sorted(wanted, key=lambda head: head.address)]


def _segment(device: int, head: Block) -> dict[str, Any]:
    """One segment: the blocks from its head on, up to the end or to an unmapped stretch."""
    blocks = _stretch(head)
    allocated = [block for block in blocks if block.allocated]
    active = [block for block in blocks if not block.is_free]
    return {
        "device": device,
        "address": head.address,
        "total_size": sum(block.size for block in blocks),
        "allocated_size": sum(block.size for block in allocated),
        "active_size": sum(block.size for block in active),
        "requested_size": sum(block.requested_size for block in active),
        "stream": head.stream,
        "segment_type": "small" if head.pool.is_small else "large",
        "segment_pool_id": head.pool.id,
        "is_expandable": head.expandable is not None,
        "frames": frames_of(head.segment_stack),
        "blocks": [_block(block) for block in blocks],
    }


def _stretch(head: Block) -> list[Block]:
    blocks, block = [], head
    while block is not None and block.mapped:
        blocks.append(block)
        block = block.next  # type: ignore[assignment]
    return blocks


def _block(block: Block) -> dict[str, Any]:
    return {
        "address": block.address,
        "size": block.size,
        "requested_size": block.requested_size,
        "state": block.state,
        "frames": frames_of(block.stack),
    }


def snapshot(allocators: list[CachingAllocator], include_traces: bool = True) -> dict[str, Any]:
    """What ``torch.cuda.memory._snapshot()`` gives: segments and traces of all devices and the options."""
    traces = [_traces(allocator) if include_traces else [] for allocator in allocators]
    result = {
        "segments": [segment for allocator in allocators for segment in memory_snapshot(allocator)],
        "device_traces": traces,
        "allocator_settings": allocators[0].settings.as_snapshot() if allocators else {},
        "external_annotations": [],
    }
    for allocator in allocators:
        _leave_mark(allocator)
    return result


def _traces(allocator: CachingAllocator) -> list[dict[str, Any]]:
    history = allocator.log.history
    return [] if history is None else history.as_snapshot()


def _leave_mark(allocator: CachingAllocator) -> None:
    """A snapshot is an entry too, and shows up in the next one."""
    if (history := allocator.log.history) is not None:
        history.record("snapshot", 0, allocator.stats.all.active_bytes.current, 0, (0, 0), None)
