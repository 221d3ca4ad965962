"""The allocator picture as data: segments and blocks of each pool, the decision of the step, memory over steps."""

from __future__ import annotations

import dataclasses

import numpy as np

from stridescope.app.moment import Moment
from stridescope.app.selection import tensor_name, views_of
from stridescope.app.text import plural, tr
from stridescope.app.values import size_text, sizes_in_words
from stridescope.engine.recording.allocator_state import AllocatorState, BlockState, RequestState, SegmentState
from stridescope.engine.recording.model import State

MOST_SEGMENTS = 64  # drawn per pool; the rest is counted


@dataclasses.dataclass(frozen=True)
class BlockBox:
    """A block: where it lies in its segment (0…1), what lives there; ``kind`` is "free", "used" or "pending"."""

    address: int
    start: float
    share: float
    kind: str
    label: str
    storage: int
    tip: str


@dataclasses.dataclass(frozen=True)
class SegmentRow:
    """A segment and its blocks."""

    address: int
    caption: str
    blocks: tuple[BlockBox, ...]


@dataclasses.dataclass(frozen=True)
class Pool:
    """The segments of one pool of one device."""

    name: str
    title: str
    rule: str
    segments: tuple[SegmentRow, ...]
    hidden: int


@dataclasses.dataclass(frozen=True)
class Decision:
    """Why the step's request got the block it got."""

    address: int
    words: str


@dataclasses.dataclass(frozen=True)
class Curve:
    """Memory over steps."""

    steps: np.ndarray
    allocated: np.ndarray
    reserved: np.ndarray
    view: int
    last: int
    notes: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class AllocatorPicture:
    """Everything the allocator panel draws."""

    pools: tuple[Pool, ...]
    decision: Decision | None
    curve: Curve
    selected: int

    def words(self) -> str:
        """Return the picture in words, for a screen reader."""
        parts = [words for words, _ in self.curve.notes]
        for pool in self.pools:
            for row in pool.segments:
                parts.append(f"{pool.title}: " + ", ".join(block.label for block in row.blocks if block.label))
        return ". ".join(parts + ([self.decision.words] if self.decision else []))


def picture(moment: Moment) -> AllocatorPicture | None:
    """Return the allocator at this moment, or None while it never had a segment."""
    allocator = moment.state.allocator
    curve = _curve(moment)
    if not len(curve.steps):
        return None
    devices = sorted({s.device for s in allocator.segments.values()})
    pools = [_pool(moment.state, d, name, several=len(devices) > 1) for d in devices for name in ("small", "large")]
    return AllocatorPicture(
        tuple(p for p in pools if p.segments), _decision(moment.state), curve, moment.selection.storage
    )


def _pool(state: State, device: str, name: str, *, several: bool) -> Pool:
    allocator = state.allocator
    found = sorted(
        (s for s in allocator.segments.values() if (s.device, s.pool) == (device, name)), key=lambda s: s.address
    )
    small = name == "small"
    rule = tr("2 MiB segments · requests ≤ 1 MiB") if small else tr("20 MiB segments, larger requests rounded to 2 MiB")
    title = tr("small pool") if small else tr("large pool")
    rows = tuple(_row(state, segment) for segment in found[:MOST_SEGMENTS])
    return Pool(name, f"{title} · {device}" if several else title, rule, rows, max(0, len(found) - MOST_SEGMENTS))


def _row(state: State, segment: SegmentState) -> SegmentRow:
    blocks = tuple(_block(state, segment, block) for block in state.allocator.blocks_of(segment))
    address = f"{segment.address:#014x}"
    caption = (
        f"{address[:-8]} {address[-8:-4]} {address[-4:]}   "
        + tr("stream {n}", n=segment.stream)
        + f"   {size_text(segment.size)}"
    )
    return SegmentRow(segment.address, caption, blocks)


def _block(state: State, segment: SegmentState, block: BlockState) -> BlockBox:
    kind = {"inactive": "free", "active_allocated": "used"}.get(block.state, "pending")
    size = size_text(block.size)
    if kind == "free":
        label = tr("free {size}", size=size)
    elif kind == "pending":
        label = tr("awaiting event") + f"  {size}"
    else:
        label = f"{resident(state, block.storage)}  {size}"
    tip = f"{label}\n{block.address:#x}" + (
        f"\n{tr('asked for {size}', size=size_text(block.requested))}" if block.requested else ""
    )
    return BlockBox(
        block.address, (block.address - segment.address) / segment.size, block.size / segment.size, kind, label,
        block.storage, tip,
    )  # fmt: skip


def resident(state: State, storage: int) -> str:
    """Return the name of what lives in a block: a variable, else the storage."""
    views = views_of(state, storage)
    named = next((v for v in views if v.names), views[0] if views else None)
    return tensor_name(state, named.id) if named else tr("storage {id}", id=storage) if storage else "?"


def _decision(state: State) -> Decision | None:
    request = state.allocator.request
    if request is None or (state.op is not None and request.step < state.op.step and not _is_last_op(state, request)):
        return None
    size = size_text(request.rounded)
    if request.error:
        return Decision(0, tr("{size} refused: {why}", size=size, why=request.error))
    notes = "; ".join(sizes_in_words(note) for note in request.notes)
    fits = any(c.address == request.address for c in request.considered)
    words = tr("best fit for {size}", size=size) if fits else tr("new segment for {size}", size=size)
    return Decision(request.address, f"{words}: {notes}" if notes else words)


def _is_last_op(state: State, request: RequestState) -> bool:
    """Whether nothing was asked for since, so that the last decision is still what people look at."""
    block = state.allocator.blocks.get(request.address)
    return block is not None and block.born >= request.step and block.state == "active_allocated"


def _curve(moment: Moment) -> Curve:
    steps, allocated, reserved = moment.recording.curve_so_far()
    allocator: AllocatorState = moment.state.allocator
    retries = allocator.count("num_alloc_retries")
    sizes = {name: size_text(allocator.count(f"{name}_bytes.current")) for name in ("reserved", "allocated")}
    peak = tr("peak {size}", size=size_text(allocator.count("allocated_bytes.peak")))
    notes = (
        (tr("reserved {size}", size=sizes["reserved"]), "dim"),
        (tr("allocated {size}", size=sizes["allocated"]), "fwd"),
        (f"{peak} · " + plural(retries, "{n} retry", "{n} retries"), "dim"),
    )
    return Curve(steps, allocated, reserved, moment.step, max(moment.recording.steps - 1, 1), notes)
