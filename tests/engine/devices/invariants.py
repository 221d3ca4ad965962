"""What must hold of every caching allocator at every moment, checked from the outside: snapshot against statistics."""

from __future__ import annotations

from typing import Any

from stridescope.engine.devices.allocator_stats import ARRAYS
from stridescope.engine.devices.caching_allocator import CachingAllocator
from stridescope.engine.devices.snapshot import memory_snapshot
from stridescope.engine.recording.allocator_state import AllocatorState


def check(allocator: CachingAllocator) -> None:
    """All invariants at once."""
    segments = memory_snapshot(allocator)
    for segment in segments:
        check_segment(segment)
    for earlier, later in zip(segments, segments[1:], strict=False):
        assert earlier["address"] + earlier["total_size"] <= later["address"], "segments overlap"
    check_sums(allocator, segments)
    check_stats(allocator)
    check_pools(allocator)


def check_segment(segment: dict[str, Any]) -> None:
    address = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == address, "the blocks do not tile their segment"
        assert block["size"] > 0 and block["size"] % 512 == 0
        address += block["size"]
    assert address == segment["address"] + segment["total_size"]
    states = [block["state"] for block in segment["blocks"]]
    assert ("inactive", "inactive") not in list(zip(states, states[1:], strict=False)), (
        "free neighbours have not merged"
    )
    for block in segment["blocks"]:
        assert block["state"] == "inactive" or block["requested_size"] <= block["size"]


def check_sums(allocator: CachingAllocator, segments: list[dict[str, Any]]) -> None:
    """The statistics are the sums over the segments, for all, small and large."""
    for name, column in allocator.stats.pools().items():
        kind = name.removesuffix("_pool")
        mine = [segment for segment in segments if kind in ("all", segment["segment_type"])]
        assert column.reserved_bytes.current == sum(segment["total_size"] for segment in mine)
        assert column.allocated_bytes.current == sum(segment["allocated_size"] for segment in mine)
        assert column.active_bytes.current == sum(segment["active_size"] for segment in mine)
        assert column.requested_bytes.current == sum(segment["requested_size"] for segment in mine)
        blocks = [block for segment in mine for block in segment["blocks"]]
        assert column.allocation.current == sum(block["state"] == "active_allocated" for block in blocks)
        assert column.active.current == sum(block["state"] != "inactive" for block in blocks)
        holes = [
            block["size"]
            for segment in mine
            if not segment["is_expandable"] and len(segment["blocks"]) > 1
            for block in segment["blocks"]
            if block["state"] == "inactive"
        ]
        assert column.inactive_split.current == len(holes)
        assert column.inactive_split_bytes.current == sum(holes)
        assert column.segment.current == sum(not segment["is_expandable"] for segment in mine)
    assert allocator.source.reserved == allocator.stats.all.reserved_bytes.current


def check_stats(allocator: CachingAllocator) -> None:
    stats = allocator.stats
    for array in ARRAYS:
        total, small, large = (getattr(column, array) for column in stats.pools().values())
        assert total.current == small.current + large.current
        assert total.allocated == small.allocated + large.allocated
        assert total.freed == small.freed + large.freed
        for stat in (total, small, large):
            assert 0 <= stat.current <= stat.peak
    assert stats.all.requested_bytes.current <= stats.all.active_bytes.current
    assert stats.all.allocated_bytes.current <= stats.all.active_bytes.current <= stats.all.reserved_bytes.current


def check_pools(allocator: CachingAllocator) -> None:
    for pool in allocator.pools.everything():
        keys = [entry[:3] for entry in pool.free]
        assert keys == sorted(set(keys)) == [(b.stream, b.size, b.address) for b in pool.blocks()]
        assert all(block.is_free and block.mapped and block.pool is pool for block in pool.blocks())
        assert all(not block.mapped for _, _, block in pool.unmapped)


def check_fold(state: AllocatorState, allocator: CachingAllocator) -> None:
    """The recorded state shows the very segments, blocks and numbers."""
    shown = [
        (s.address, s.size, s.stream, s.is_expandable, [(b.address, b.size, b.state) for b in state.blocks_of(s)])
        for s in sorted(state.segments.values(), key=lambda segment: segment.address)
    ]
    real = [
        (
            segment["address"],
            segment["total_size"],
            segment["stream"],
            segment["is_expandable"],
            [(block["address"], block["size"], block["state"]) for block in segment["blocks"]],
        )
        for segment in memory_snapshot(allocator)
    ]
    assert shown == real
    for array in ("allocation", "allocated_bytes", "active", "active_bytes", "requested_bytes", "reserved_bytes"):
        stat = getattr(allocator.stats.all, array)
        assert state.count(f"{array}.current") == stat.current
        assert state.count(f"{array}.peak") == stat.peak
    assert state.inactive_split() == (
        allocator.stats.all.inactive_split.current,
        allocator.stats.all.inactive_split_bytes.current,
    )
    waiting = {b.address for b in state.blocks.values() if b.state == "active_pending_free"}
    assert {pending.address for pending in state.pending} == waiting
