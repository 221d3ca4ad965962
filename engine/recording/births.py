"""Where tensors come from: each is the n-th that the ops on a line of the script made.

A run's ids mean nothing to the next run; a birthplace does, as long as the script does the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from stridescope.engine.events import OpBegan, SourceSeen, TensorMade, Wire
from stridescope.engine.recording.columns import Ints
from stridescope.engine.recording.reader import Recording


class Birthplace(NamedTuple):
    """A line of a file, and the how manieth of all tensors it is that were made there (1 is the first)."""

    path: str
    line: int
    nth: int


def born_on(recording: Recording, path: str, line: int) -> tuple[Ints, Ints]:
    """Return the steps at which ops on a line made tensors, and those tensors, in order."""
    wanted = [source.id for source in recording.sources.values() if same_file(source.path, path)]
    ops, made = recording.steps_of(OpBegan), recording.steps_of(TensorMade)
    if not len(ops) or not wanted:
        return made[:0], made[:0]
    last_op = np.searchsorted(ops, made) - 1
    on_line = np.isin(recording.column(OpBegan, "source"), wanted) & (recording.column(OpBegan, "line") == line)
    here = (last_op >= 0) & on_line[last_op]
    return made[here], recording.column(TensorMade, "tensor")[here]


def birthplace(recording: Recording, step: int) -> Birthplace | None:
    """Return where the tensor that was made at ``step`` was born; None for one that no op on a line made."""
    ops = recording.steps_of(OpBegan)
    at = int(np.searchsorted(ops, step))
    op = recording.event(int(ops[at - 1])) if at else None
    if not isinstance(op, OpBegan) or op.source not in recording.sources:
        return None
    path = recording.sources[op.source].path
    steps, _ = born_on(recording, path, op.line)
    return Birthplace(path, op.line, int(np.searchsorted(steps, step)) + 1)


def same_file(one: str, other: str) -> bool:
    """Say whether two paths are of the same file, links followed."""
    return one == other or os.path.realpath(one) == os.path.realpath(other)


class Births:
    """Follows a run's events and counts the tensors that are born on a line; it may begin with what is recorded."""

    def __init__(self, path: str, line: int, past: Recording | None) -> None:
        self._path, self._line = path, line
        ops = past.steps_of(OpBegan).tolist() if past else []
        op = past.event(ops[-1]) if past and ops else None
        sources: Iterable[tuple[int, str]] = ((s.id, s.path) for s in past.sources.values()) if past else ()
        self._sources = {id for id, name in sources if same_file(name, path)}
        self._on_line = isinstance(op, OpBegan) and op.line == line and op.source in self._sources
        self.tensors: list[int] = born_on(past, path, line)[1].tolist() if past else []

    def follow(self, wire: Wire) -> None:
        """Take in an event."""
        code = wire[0]
        if code == OpBegan.code:
            self._on_line = wire[6] == self._line and wire[5] in self._sources
        elif code == TensorMade.code and self._on_line:
            self.tensors.append(wire[1])
        elif code == SourceSeen.code and same_file(wire[2], self._path):
            self._sources.add(wire[1])
