"""Stepping in time: the next or previous stop of a recording. Nothing is run again."""

from __future__ import annotations

import numpy as np

from stridescope.engine.events import FrameEntered, FrameLeft
from stridescope.engine.recording.reader import Recording

GRAINS = ("line", "op", "event")
MODES = ("over", "into", "out")


def next_stop(recording: Recording, step: int, grain: str, mode: str = "over") -> int | None:
    """Return the first stop after ``step``, or None when the recording has none (yet).

    ``into`` takes any stop, ``over`` one in the same call or further out, ``out`` only one further out.
    """
    stops = recording.stops(grain)
    later = stops[np.searchsorted(stops, step, side="right") :]
    found = later[_wanted(recording, later, step, mode)]
    return int(found[0]) if len(found) else None


def previous_stop(recording: Recording, step: int, grain: str, mode: str = "over") -> int | None:
    """Return the last stop before ``step``, or None at the beginning."""
    stops = recording.stops(grain)
    earlier = stops[: np.searchsorted(stops, step, side="left")]
    found = earlier[_wanted(recording, earlier, step, mode)]
    return int(found[-1]) if len(found) else None


def nearest_stop(recording: Recording, step: int, grain: str) -> int:
    """Return the stop nearest to ``step``, or ``step`` itself where there is none."""
    stops = recording.stops(grain)
    if not len(stops):
        return step
    at = int(np.searchsorted(stops, step))
    around = stops[max(0, at - 1) : at + 1]
    return int(around[np.argmin(np.abs(around - step))])


def stop_at_line(recording: Recording, step: int, source: int, line: int) -> int | None:
    """Return the next step after ``step`` at which ``line`` is about to run, or None."""
    lines = recording.lines()
    for at in lines[np.searchsorted(lines, step, side="right") :].tolist():
        event = recording.event(at)
        if (getattr(event, "source", 0), getattr(event, "line", 0)) == (source, line):
            return int(at)
    return None


def depths(recording: Recording, steps: np.ndarray) -> np.ndarray:
    """Return how many calls are open after each of ``steps``."""
    entered, left = recording.steps_of(FrameEntered), recording.steps_of(FrameLeft)
    return np.searchsorted(entered, steps, side="right") - np.searchsorted(left, steps, side="right")


def _wanted(recording: Recording, stops: np.ndarray, step: int, mode: str) -> np.ndarray:
    if mode == "into":
        return np.ones(len(stops), bool)
    here = int(depths(recording, np.array([step]))[0])
    return depths(recording, stops) <= (max(here, 1) if mode == "over" else here - 1)
