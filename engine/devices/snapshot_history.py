"""The memory as it was before a snapshot's trace began: the final segments, with the trace undone from its end."""

from __future__ import annotations

import dataclasses
from typing import Any

from stridescope.engine.devices.block import PoolId
from stridescope.engine.devices.block_sizes import SMALL_BUFFER
from stridescope.engine.devices.snapshot_file import Entry

DEFAULT_POOL: PoolId = (0, 0)


@dataclasses.dataclass(slots=True)
class PastSegment:
    """A segment that was there when the trace began."""

    address: int
    size: int
    is_small: bool
    stream: int
    pool_id: PoolId
    is_expandable: bool


@dataclasses.dataclass(slots=True)
class PastBlock:
    """A block in use. ``size`` is 0 when only the request is known, for the file shows only the last state."""

    address: int
    requested: int
    size: int
    pending: bool


@dataclasses.dataclass(slots=True)
class Past:
    """What was held and used before the first entry of the trace."""

    segments: dict[int, PastSegment]
    blocks: dict[int, PastBlock]


def pool_id_of(item: dict[str, Any], key: str) -> PoolId:
    """The pool of an entry or segment; files of older versions do not tell it."""
    found = item.get(key)
    if isinstance(found, tuple | list) and len(found) == 2 and all(isinstance(part, int) for part in found):
        return found[0], found[1]
    return DEFAULT_POOL


def before_trace(segments: list[dict[str, Any]], trace: list[Entry]) -> Past:
    """Undo the trace from the final segments."""
    past = _final_state(segments)
    for entry in reversed(trace):
        if isinstance(entry.get("addr"), int) and (undo := _UNDO.get(entry["action"])) is not None:
            undo(past, entry)
    return past


def _final_state(segments: list[dict[str, Any]]) -> Past:
    past = Past({}, {})
    for segment in segments:
        address = segment["address"]
        past.segments[address] = PastSegment(
            address,
            segment["total_size"],
            segment["segment_type"] == "small",
            segment["stream"],
            pool_id_of(segment, "segment_pool_id"),
            bool(segment.get("is_expandable", False)),
        )
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                pending = block["state"] != "active_allocated"
                requested = block.get("requested_size", block["size"])
                past.blocks[address] = PastBlock(address, requested, block["size"], pending)
            address += block["size"]
    return past


def _undo_alloc(past: Past, entry: Entry) -> None:
    past.blocks.pop(entry["addr"], None)


def _undo_free_requested(past: Past, entry: Entry) -> None:
    if (block := past.blocks.get(entry["addr"])) is not None:
        block.pending = False
    else:
        past.blocks[entry["addr"]] = PastBlock(entry["addr"], entry["size"], 0, False)


def _undo_free_completed(past: Past, entry: Entry) -> None:
    past.blocks[entry["addr"]] = PastBlock(entry["addr"], entry["size"], 0, True)


def _undo_segment_alloc(past: Past, entry: Entry) -> None:
    past.segments.pop(entry["addr"], None)


def _undo_segment_free(past: Past, entry: Entry) -> None:
    past.segments[entry["addr"]] = _freed_segment(entry, False)


def _freed_segment(entry: Entry, is_expandable: bool) -> PastSegment:
    is_small = entry["size"] == SMALL_BUFFER
    pool_id = pool_id_of(entry, "pool_id")
    return PastSegment(entry["addr"], entry["size"], is_small, entry["stream"], pool_id, is_expandable)


def _undo_segment_map(past: Past, entry: Entry) -> None:
    """Cut the mapped range out of the stretch that holds it."""
    begin, end = entry["addr"], entry["addr"] + entry["size"]
    for stretch in list(past.segments.values()):
        stretch_end = stretch.address + stretch.size
        if stretch.is_expandable and stretch.address <= begin < stretch_end:
            del past.segments[stretch.address]
            for first, last in ((stretch.address, begin), (end, stretch_end)):
                if last > first:
                    past.segments[first] = dataclasses.replace(stretch, address=first, size=last - first)


def _undo_segment_unmap(past: Past, entry: Entry) -> None:
    """Put the range back, joined with the stretches that it touches."""
    joined = _freed_segment(entry, True)
    for stretch in list(past.segments.values()):
        if not stretch.is_expandable:
            continue
        if stretch.address + stretch.size == joined.address or joined.address + joined.size == stretch.address:
            del past.segments[stretch.address]
            joined = dataclasses.replace(
                stretch, address=min(stretch.address, joined.address), size=stretch.size + joined.size
            )
    past.segments[joined.address] = joined


_UNDO = {
    "alloc": _undo_alloc,
    "free_requested": _undo_free_requested,
    "free_completed": _undo_free_completed,
    "segment_alloc": _undo_segment_alloc,
    "segment_free": _undo_segment_free,
    "segment_map": _undo_segment_map,
    "segment_unmap": _undo_segment_unmap,
}
