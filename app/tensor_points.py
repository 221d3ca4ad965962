"""Breakpoints on tensors: a tensor as its birthplace, which the next run has too, and the tensor that is meant now."""

from __future__ import annotations

from stridescope.app.selection import tensor_name
from stridescope.engine.recording.births import birthplace, born_on
from stridescope.engine.recording.model import State
from stridescope.engine.recording.reader import Recording
from stridescope.engine.worker.protocol import Breakpoint


def point_at(recording: Recording, state: State, tensor: int, change: str) -> Breakpoint:
    """Return the breakpoint on a tensor; on one that no line of the script made, it is good for this run only."""
    name, row = tensor_name(state, tensor), state.tensors.get(tensor)
    born = birthplace(recording, row.born) if row is not None else None
    if born is None:
        return Breakpoint(kind="tensor", change=change, number=tensor, name=name)
    return Breakpoint(kind="tensor", change=change, path=born.path, line=born.line, number=born.nth, name=name)


def tensor_of(recording: Recording, point: Breakpoint) -> int:
    """Return the id of the tensor that a breakpoint means in this run, 0 while (or where) it is not born."""
    if not point.line:
        return point.number
    _, tensors = born_on(recording, point.path, point.line)
    return int(tensors[point.number - 1]) if 0 < point.number <= len(tensors) else 0
