"""Stepping in time: the next or previous stop of a recording. Nothing is run again.

The modes are those of the worker's stepper, so that a recorded step ends where the live one did: ``over`` stays in the
call and the op (or deeper in neither), ``into`` also takes finer stops, ``out`` leaves. ``any`` takes every stop of the
grain, however deep: that is what scrubbing and playing do.
"""

from __future__ import annotations

import dataclasses
import sys

import numpy as np

from stridescope.app.call_depths import depths_of
from stridescope.engine import events as ev
from stridescope.engine.events.grains import CLOSERS, DECISIONS, GRAINS, LINES, OPS
from stridescope.engine.recording.lines import first_from, lines_of_text
from stridescope.engine.recording.reader import Recording

MODES = ("over", "into", "out", "any")
_FAR = sys.maxsize >> 1


@dataclasses.dataclass(frozen=True)
class _Goal:
    """Where a step may end: at these events, no deeper than this (calls, then ops), in this thread."""

    kinds: tuple[type[ev.Event], ...]
    calls: int = _FAR
    ops: int = _FAR
    thread: int = 0


def next_stop(recording: Recording, step: int, grain: str, mode: str = "over") -> int | None:
    """Return the first stop after ``step``, or None when the recording has none (yet)."""
    found = _stops(recording, step, grain, mode)
    at = int(np.searchsorted(found, step, side="right"))
    return int(found[at]) if at < len(found) else None


def previous_stop(recording: Recording, step: int, grain: str, mode: str = "over") -> int | None:
    """Return the last stop before ``step``, or None at the beginning."""
    found = _stops(recording, step, grain, mode)
    at = int(np.searchsorted(found, step, side="left"))
    return int(found[at - 1]) if at else None


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
    return _at_line(recording, lines[np.searchsorted(lines, step, side="right") :].tolist(), source, line)


def stop_at_line_before(recording: Recording, step: int, source: int, line: int) -> int | None:
    """Return the last step before ``step`` at which ``line`` was about to run, or None."""
    lines = recording.lines()
    return _at_line(recording, lines[: np.searchsorted(lines, step, side="left")][::-1].tolist(), source, line)


def _at_line(recording: Recording, steps: list[int], source: int, line: int) -> int | None:
    if source in recording.sources:
        line = first_from(lines_of_text(recording.sources[source].text), line)
    for at in steps:
        event = recording.event(at)
        if (getattr(event, "source", 0), getattr(event, "line", 0)) == (source, line):
            return int(at)
    return None


def ops_at(recording: Recording, steps: np.ndarray) -> np.ndarray:
    """Return how many ops and backward nodes are open around each of ``steps``."""
    begun, ended = recording.steps_of(*OPS), recording.steps_of(*CLOSERS)
    return np.searchsorted(begun, steps, side="left") - np.searchsorted(ended, steps, side="right")


def _stops(recording: Recording, step: int, grain: str, mode: str) -> np.ndarray:
    goal = _goal(recording, step, grain, mode)
    stops = recording.steps_of(*goal.kinds, ev.ScriptEnded)
    if goal.calls == _FAR:
        return stops
    (calls, threads), ops = depths_of(recording).at(stops), ops_at(recording, stops)
    level = (calls < goal.calls) | ((calls == goal.calls) & (ops <= goal.ops))
    here = (threads == goal.thread) | np.isin(stops, recording.steps_of(ev.ScriptEnded)) | (goal.thread == 0)
    found: np.ndarray = stops[level & here]
    return found


def _goal(recording: Recording, step: int, grain: str, mode: str) -> _Goal:
    """Turn a step into where it may end, seen from where we look."""
    kinds = GRAINS[grain]
    if mode == "any" or step < 0:
        return _Goal(kinds)
    at_line = recording.code(step) == ev.LineReached.code
    if mode == "into":
        return _Goal(tuple({*kinds, *((*LINES, *OPS) if at_line else DECISIONS)}))
    here = np.array([step])
    depths, threads = depths_of(recording).at(here)
    calls, ops, thread = max(1, int(depths[0])), int(ops_at(recording, here)[0]), int(threads[0])
    if mode == "over":
        return _Goal(kinds, calls, ops, thread)
    if at_line:
        return _Goal(kinds, calls - 1, thread=thread)
    if ops > 0:
        return _Goal((*kinds, *LINES, *OPS), calls, ops - 1, thread)
    return _Goal(LINES, calls, thread=thread)
