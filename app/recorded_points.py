"""Breakpoints in the past: at which recorded steps each of them would have stopped.

They mean what they mean to the worker (:mod:`stridescope.engine.worker.breakpoints`), told from the recording. Hits
that a breakpoint lets pass are counted from the beginning of the recording.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from stridescope.app.recorded_values import NotRecorded, evaluate
from stridescope.app.tensor_points import tensor_of
from stridescope.app.values import elements_of
from stridescope.engine import events as ev
from stridescope.engine.layout import is_contiguous
from stridescope.engine.recording.births import same_file
from stridescope.engine.recording.lines import first_from, lines_of_text
from stridescope.engine.recording.reader import Recording
from stridescope.engine.worker.protocol import Breakpoint

KINDS: dict[str, tuple[type[ev.Event], ...]] = {
    "line": (ev.LineReached,),
    "op": (ev.OpBegan,),
    "copy": (ev.CopyMade,),
    "noncontiguous": (ev.TensorMade,),
    "split": (ev.BlockSplit,),
    "allocation": (ev.BlockAllocated, ev.StorageMade),
    "free": (ev.BlockFreed, ev.StorageFreed),
    "reserved": (ev.SegmentAllocated, ev.SegmentMapped),
    "notfinite": (ev.GradientSent, ev.GradSet, ev.GradAccumulated),
    "mutated": (ev.VersionBumped,),
    "backward": (ev.BackwardBegan,),
    "node": (ev.NodeBegan,),
    "error": (ev.ExceptionRaised, ev.OpFailed, ev.OutOfMemory),
}
CHANGES: dict[str, tuple[type[ev.Event], ...]] = {
    "written": (ev.VersionBumped,),
    "viewed": (ev.TensorMade,),
    "grad": (ev.GradSet, ev.GradAccumulated),
    "freed": (ev.TensorFreed,),
}


def next_stop(recording: Recording, points: Iterable[Breakpoint], step: int) -> int | None:
    """Return the first recorded step after ``step`` at which one of the breakpoints stops."""
    found = (next((at for at in stops(recording, point) if at > step), None) for point in points if point.enabled)
    return min((at for at in found if at is not None), default=None)


def previous_stop(recording: Recording, points: Iterable[Breakpoint], step: int) -> int | None:
    """Return the last recorded step before ``step`` at which one of the breakpoints stops."""
    found: list[int] = []
    for point in points:
        if point.enabled:
            found += list(itertools.takewhile(lambda at: at < step, stops(recording, point)))[-1:]
    return max(found, default=None)


def stops(recording: Recording, point: Breakpoint) -> Iterator[int]:
    """Yield the steps at which a breakpoint stops, in order."""
    if point.kind == "tensor":
        point = dataclasses.replace(point, number=tensor_of(recording, point), line=0)
    hits = 0
    for step in _candidates(recording, point):
        if _holds(recording, point, step) and _condition_holds(recording, point, step):
            hits += 1
            if hits > point.skip:
                yield step


def _candidates(recording: Recording, point: Breakpoint) -> list[int]:
    if point.kind == "tensor":
        codes = {kind.code for kind in CHANGES.get(point.change, ())}
        return [step for step in recording.history("tensor", point.number) if recording.code(step) in codes]
    found: list[int] = recording.steps_of(*KINDS.get(point.kind, ())).tolist()
    return found


def _holds(recording: Recording, point: Breakpoint, step: int) -> bool:
    test = _TESTS.get(point.kind)
    return test is None or test(recording, point, step, recording.event(step))


def _condition_holds(recording: Recording, point: Breakpoint, step: int) -> bool:
    if not point.condition:
        return True
    try:
        return bool(np.all(evaluate(recording.state(step), point.condition)))
    except NotRecorded:
        return False  # what the past cannot tell is no reason to stop


Test = Callable[[Recording, Breakpoint, int, ev.Event], bool]


def _line(recording: Recording, point: Breakpoint, step: int, event: ev.Event) -> bool:
    source = recording.sources.get(getattr(event, "source", 0))
    if source is None or not same_file(source.path, point.path):
        return False
    return getattr(event, "line", 0) == first_from(lines_of_text(source.text), point.line)


def _op(recording: Recording, point: Breakpoint, step: int, event: ev.Event) -> bool:
    name = str(getattr(event, "op", "")).removeprefix("aten::")
    return point.op.removeprefix("aten::") in (name, name.partition(".")[0])


def _tensor(recording: Recording, point: Breakpoint, step: int, event: ev.Event) -> bool:
    if isinstance(event, ev.TensorMade):
        return event.base == point.number
    return isinstance(event, ev.VersionBumped) or getattr(event, "tensor", 0) == point.number


def _noncontiguous(recording: Recording, point: Breakpoint, step: int, event: ev.Event) -> bool:
    return isinstance(event, ev.TensorMade) and not is_contiguous(event.sizes, event.strides)


def _reserved(recording: Recording, point: Breakpoint, step: int, event: ev.Event) -> bool:
    _, _, reserved = recording.allocator_curve(step)
    before = int(reserved[-2]) if len(reserved) > 1 else 0
    return len(reserved) > 0 and before <= point.number < int(reserved[-1])


def _notfinite(recording: Recording, point: Breakpoint, step: int, event: ev.Event) -> bool:
    state = recording.state(step)
    tensor = state.tensors.get(getattr(event, "gradient", 0) or getattr(event, "grad", 0))
    storage = state.storages.get(tensor.storage) if tensor else None
    if tensor is None or storage is None:
        return False
    if storage.summary:
        return (
            bool(storage.summary["nans"])
            or not np.isfinite([storage.summary["minimum"], storage.summary["maximum"]]).all()
        )
    values = elements_of(storage.values, tensor.dtype)
    return values is not None and not bool(np.isfinite(values.astype(np.complex128)).all())


def _mutated(recording: Recording, point: Breakpoint, step: int, event: ev.Event) -> bool:
    state = recording.state(step)
    saved = {kept.tensor for node in state.nodes.values() if not node.freed for kept in node.saved}
    return any(state.tensors[id].counter == getattr(event, "counter", 0) for id in saved if id in state.tensors)


_TESTS: dict[str, Test] = {
    "line": _line, "op": _op, "tensor": _tensor, "noncontiguous": _noncontiguous, "reserved": _reserved,
    "notfinite": _notfinite, "mutated": _mutated,
}  # fmt: skip
