"""The allocator picture as data: segments and blocks of each pool, the decision of the step, memory over steps."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import numpy as np

from stridescope.app.moment import Moment
from stridescope.app.panels.reasons import in_words
from stridescope.app.selection import tensor_name, views_of
from stridescope.app.text import plural, tr
from stridescope.app.values import size_text
from stridescope.engine.recording.allocator_state import AllocatorState, BlockState, RequestState, SegmentState
from stridescope.engine.recording.model import State

_SENTENCE = re.compile(r"(?<=\.) (?=GPU |Of )")
MOST_SEGMENTS = 64  # drawn per pool; the rest is counted


@dataclasses.dataclass(frozen=True)
class BlockBox:
    """A block: where it lies in its segment (0…1), what lives there; ``kind`` is "free", "used" or "pending".

    ``verdict`` is "chosen" or "refused" for a block that the last search looked at.
    """

    address: int
    start: float
    share: float
    kind: str
    label: str
    storage: int
    tip: str
    verdict: str = ""


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
    """Why the step's request got the block it got, in one sentence and step by step.

    A step is a sign ("✓" chosen, "✕" refused, "·" what else was done, "!" what failed) and its words.
    """

    address: int
    words: str
    title: str
    steps: tuple[tuple[str, str], ...]


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
        if self.decision is not None:
            parts += [self.decision.title, *(words for _, words in self.decision.steps)]
        return ". ".join(parts)


def picture(moment: Moment) -> AllocatorPicture | None:
    """Return the allocator at this moment, or None while it never had a segment."""
    allocator = moment.state.allocator
    curve = _curve(moment)
    if not len(curve.steps):
        return None
    devices = sorted({s.device for s in allocator.segments.values()})
    request, decision = allocator.request, _decision(moment.state)
    verdicts = {block.address: block.verdict for block in request.considered} if request and decision else {}
    pools = [
        _pool(moment.state, device, name, verdicts, several=len(devices) > 1)
        for device in devices
        for name in _names(moment.state)
    ]
    return AllocatorPicture(tuple(p for p in pools if p.segments), decision, curve, moment.selection.storage)


def _names(state: State) -> list[str]:
    """The pools with segments: the small one, the large one, then the private ones in the order of their ids."""
    names = {segment.pool for segment in state.allocator.segments.values()}
    return ["small", "large", *sorted(names - {"small", "large"}, key=lambda name: name.split(" ", 1)[::-1])]


def _pool(state: State, device: str, name: str, verdicts: dict[int, str], *, several: bool) -> Pool:
    allocator = state.allocator
    found = sorted(
        (s for s in allocator.segments.values() if (s.device, s.pool) == (device, name)), key=lambda s: s.address
    )
    kind, _, private = name.partition(" ")
    small = kind == "small"
    rule = tr("2 MiB segments · requests ≤ 1 MiB") if small else tr("20 MiB segments, larger requests rounded to 2 MiB")
    title = tr("small pool") if small else tr("large pool")
    if private:
        title = tr("private pool {id}: {kind}", id=private, kind=title)
    rows = tuple(_row(state, segment, verdicts) for segment in found[:MOST_SEGMENTS])
    return Pool(kind, f"{title} · {device}" if several else title, rule, rows, max(0, len(found) - MOST_SEGMENTS))


def _row(state: State, segment: SegmentState, verdicts: dict[int, str]) -> SegmentRow:
    blocks = tuple(
        _block(state, segment, block, verdicts.get(block.address, "")) for block in state.allocator.blocks_of(segment)
    )
    address = f"{segment.address:#014x}"
    caption = (
        f"{address[:-8]} {address[-8:-4]} {address[-4:]}   "
        + tr("stream {n}", n=segment.stream)
        + f"   {size_text(segment.size)}"
    )
    return SegmentRow(segment.address, caption, blocks)


def _block(state: State, segment: SegmentState, block: BlockState, verdict: str) -> BlockBox:
    kind = {"inactive": "free", "active_allocated": "used"}.get(block.state, "pending")
    size = size_text(block.size)
    if kind == "free":
        label = tr("free {size}", size=size)
    elif kind == "pending":
        label = f"{_awaited(state.allocator, block.address)}  {size}"
    else:
        label = f"{resident(state, block.storage)}  {size}" if block.storage else size
    tip = [label, f"{block.address:#x}"]
    if block.requested:
        tip.append(tr("asked for {size}", size=size_text(block.requested)))
    if block.also_used_by:
        streams = ", ".join(map(str, block.also_used_by))
        tip.append(tr("also used by stream {streams}: freeing it will wait for that", streams=streams))
    if kind == "free" and verdict:
        tip.append(in_words(verdict))
    return BlockBox(
        block.address, (block.address - segment.address) / segment.size, block.size / segment.size, kind, label,
        block.storage, "\n".join(tip), "" if not verdict else "chosen" if verdict.startswith("chosen") else "refused",
    )  # fmt: skip


def _awaited(allocator: AllocatorState, address: int) -> str:
    """What a block that was given back still waits for."""
    waits = [pending for pending in allocator.pending if pending.address == address]
    if any(pending.event == 0 for pending in waits):
        return tr("awaits the end of a graph capture")
    streams = ", ".join(str(stream) for stream in dict.fromkeys(pending.stream for pending in waits))
    return tr("awaits stream {streams}", streams=streams) if streams else tr("awaiting event")


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
    asked = tr("{size} asked for on stream {stream}", size=size_text(request.size), stream=request.stream)
    title = asked if request.size == request.rounded else asked + ", " + tr("rounded to {size}", size=size)
    return Decision(request.address, _sentence(request, size), title, tuple(_steps(request)))


def _sentence(request: RequestState, size: str) -> str:
    if request.error:
        return tr("{size} refused: {why}", size=size, why=_first_sentences(request.error))
    notes = "; ".join(in_words(note) for note in request.notes)
    fits = any(c.address == request.address for c in request.considered)
    words = tr("best fit for {size}", size=size) if fits else tr("new segment for {size}", size=size)
    return f"{words}: {notes}" if notes else words


def _steps(request: RequestState) -> Iterator[tuple[str, str]]:
    for block in request.considered:
        sign = "✓" if block.verdict.startswith("chosen") else "✕"
        where = tr("{size} free at {address}", size=size_text(block.size), address=f"{block.address:#x}")
        yield sign, f"{where}: {in_words(block.verdict)}"
    if not request.considered:
        yield "·", tr("no free block in the pool")
    for note in request.notes:
        yield "!" if note.startswith("the device gives no") else "·", in_words(note)
    if request.error:
        yield from (("!", sentence) for sentence in _SENTENCE.split(_first_sentences(request.error)))


def _first_sentences(error: str) -> str:
    """An error without the advice at its end, which is the same every time."""
    return error.partition(" If reserved but unallocated")[0]


def _is_last_op(state: State, request: RequestState) -> bool:
    """Whether nothing was asked for since, so that the last decision is still what people look at."""
    if request.error:
        return state.error is not None
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
