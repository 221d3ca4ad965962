"""How deep in calls a recorded step is, and in which thread.

A generator or coroutine that waits is a call that has not ended, but nothing runs inside it: what counts is the call
whose line or op was told last, and those that led to it.
"""

from __future__ import annotations

import numpy as np

from stridescope.app.origins import memory_of
from stridescope.engine.events import FrameEntered, FrameLeft, LineReached, OpBegan
from stridescope.engine.recording.columns import Ints
from stridescope.engine.recording.reader import Recording


class CallDepths:
    """The depths of one recording, as far as it reached when they were made."""

    def __init__(self, recording: Recording) -> None:
        self.steps = recording.steps
        entered = recording.column(FrameEntered, "frame")
        size = int(entered.max(initial=0)) + 1
        depths, outermost = [0] * size, [0] * size
        for frame, parent in zip(entered.tolist(), recording.column(FrameEntered, "parent").tolist(), strict=True):
            depths[frame] = depths[parent] + 1
            outermost[frame] = outermost[parent] or frame
        depth, root = np.array(depths, np.int64), np.array(outermost, np.int64)
        marks, found = list[Ints](), list[Ints]()
        for kind in (FrameEntered, LineReached, OpBegan, FrameLeft):
            frames = recording.column(kind, "frame")
            known = (frames > 0) & (frames < size)
            marks.append(recording.steps_of(kind)[known])
            found.append(np.stack([depth[frames[known]] - (kind is FrameLeft), root[frames[known]]]))
        at = np.concatenate(marks)
        order = np.argsort(at, kind="stable")
        self._marks: Ints = at[order]
        self._depths, self._roots = np.concatenate(found, axis=1)[:, order]

    def at(self, steps: Ints) -> tuple[Ints, Ints]:
        """Return how many calls each step is inside of, and a number for its thread; 0 before any call."""
        places = np.searchsorted(self._marks, steps, side="right") - 1
        if not len(self._marks):
            return np.zeros_like(steps), np.zeros_like(steps)
        there = places >= 0
        return np.where(there, self._depths[places], 0), np.where(there, self._roots[places], 0)


def depths_of(recording: Recording) -> CallDepths:
    """Return the depths of a recording, made once for each length that it has."""
    memory = memory_of(recording)
    kept = memory.get("depths")
    if not isinstance(kept, CallDepths) or kept.steps != recording.steps:
        kept = memory["depths"] = CallDepths(recording)
    return kept
