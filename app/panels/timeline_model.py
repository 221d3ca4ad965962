"""The timeline as data: lanes of steps, flags, and where the two cursors are."""

from __future__ import annotations

import dataclasses

import numpy as np

from stridescope.app.moment import Moment
from stridescope.app.text import tr
from stridescope.engine.events import BlockAllocated, BlockFreed, SegmentAllocated, SegmentFreed


@dataclasses.dataclass(frozen=True)
class StepLane:
    """The steps of one kind; ``color`` is a token and ``widest`` the most pixels that a step takes."""

    name: str
    color: str
    steps: np.ndarray
    widest: float


@dataclasses.dataclass(frozen=True)
class Flag:
    """A named moment."""

    step: int
    name: str


@dataclasses.dataclass(frozen=True)
class TimelinePicture:
    """Everything the timeline draws."""

    lanes: tuple[StepLane, ...]
    flags: tuple[Flag, ...]
    view: int
    head: int
    steps: int

    def words(self) -> str:
        """Return the timeline in words, for a screen reader."""
        lanes = ", ".join(f"{len(lane.steps)} {lane.name}" for lane in self.lanes)
        return tr("step {step} of {steps}: {lanes}", step=self.view + 1, steps=self.steps, lanes=lanes)


def picture(moment: Moment) -> TimelinePicture:
    """Return the whole recording so far, and where we look."""
    recording = moment.recording
    lanes = [
        StepLane(tr("lines"), "dim", recording.lines(), 26),
        StepLane(tr("ops"), "fwd", recording.ops(), 9),
        StepLane(tr("backward"), "bwd", recording.backwards(), 9),
    ]
    memory = recording.steps_of(BlockAllocated, BlockFreed, SegmentAllocated, SegmentFreed)
    if len(memory):
        lanes.append(StepLane(tr("allocator"), "ok", memory, 5))
    flags = tuple(Flag(mark.step, str(mark.body.get("name", mark.kind))) for mark in recording.marks())
    return TimelinePicture(tuple(lanes), flags, moment.step, moment.head, max(recording.steps, 1))
