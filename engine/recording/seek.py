"""Going to a step: from the nearest known machine, forward.

Known machines are the one at the cursor, the keyframes of the file, those made here where the file has none yet
(it still grows, or its writer was killed), and a few waypoints near the places visited last, for stepping back.
"""

from __future__ import annotations

import bisect
import contextlib
import gc
import sqlite3
from collections.abc import Iterator

from stridescope.engine.events import Wire
from stridescope.engine.recording import keyframes
from stridescope.engine.recording.batches import Batches, Recent
from stridescope.engine.recording.columns import DamagedBatch
from stridescope.engine.recording.machine import Machine
from stridescope.engine.recording.model import State
from stridescope.engine.recording.state import advance

# Machines kept in memory for a file without keyframes: further apart than a file's, for they are whole copies.
_MADE_APART = 16384
_WAYPOINTS_APART = 128
_WAYPOINTS_BEFORE = 256
_WAYPOINTS = 32


class Seeker:
    """Knows the state at every step of one recording; ``database`` is given where it holds keyframes of ours."""

    def __init__(self, batches: Batches, database: sqlite3.Connection | None) -> None:
        self._batches, self._database = batches, database
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        rows = database.execute("SELECT step FROM keyframe ORDER BY step") if database else ()
        self._stored: list[int] = [row[0] for row in rows]
        self._made: dict[int, Machine] = {}
        self._made_steps: list[int] = []
        self._waypoints: Recent[int, Machine] = Recent(_WAYPOINTS)
        self._machine = Machine()
        self._states: Recent[int, State] = Recent(4)

    def add_batch(self, first: int, last: int) -> None:
        """Learn of a batch that follows those known."""
        self._firsts.append(first)
        self._lasts.append(last)

    def state(self, step: int) -> State:
        """Return the state after ``step``."""
        with _collected_later():
            return self._states.use(step, lambda: self._go(step))

    def _go(self, step: int) -> State:
        machine = self._nearest(step)
        index = bisect.bisect_right(self._lasts, machine.step)
        while machine.step < step:
            first = self._firsts[index]
            wires = self._batches.wires(first)
            self._advance(machine, wires[machine.step + 1 - first : step + 1 - first], step)
            index += 1
            self._keep_keyframe(machine)
        self._machine = machine
        return machine.snapshot()

    def _advance(self, machine: Machine, wires: list[Wire], step: int) -> None:
        """Move on within one batch, leaving waypoints when ``step`` is near."""
        while wires:
            here = machine.step
            far = step - _WAYPOINTS_BEFORE - here
            count = min(len(wires), far if far > 0 else _WAYPOINTS_APART - here % _WAYPOINTS_APART)
            advance(machine, wires[:count])
            wires = wires[count:]
            if far <= 0 and machine.step % _WAYPOINTS_APART == 0 and machine.step < step:
                self._waypoints.keep(machine.step, machine.twin())

    def _nearest(self, step: int) -> Machine:
        """Return the known machine that is nearest before ``step``, free to be moved."""
        here = self._machine.step if self._machine.step <= step else -1
        way = max((at for at in self._waypoints if at <= step), default=-1)
        made, stored = _before(self._made_steps, step), _before(self._stored, step)
        nearest = max(here, way, made, stored)
        if nearest == here:
            return self._machine if here >= 0 else Machine()
        if nearest == way:
            return self._waypoints[way].twin()
        if nearest == made:
            return self._made[made].twin()
        return self._read_keyframe(stored)

    def _read_keyframe(self, step: int) -> Machine:
        database = self._database
        row = database and database.execute("SELECT state FROM keyframe WHERE step = ?", (step,)).fetchone()
        if not row:
            raise DamagedBatch(f"the keyframe of step {step} is missing")
        return keyframes.decode_machine(row[0], self._batches.load)

    def _keep_keyframe(self, machine: Machine) -> None:
        last = max(self._made_steps[-1] if self._made_steps else -1, self._stored[-1] if self._stored else -1)
        if machine.step - last >= _MADE_APART and keyframes.is_due(machine, last):
            self._made[machine.step] = machine.twin()
            self._made_steps.append(machine.step)


@contextlib.contextmanager
def _collected_later() -> Iterator[None]:
    """Thousands of records are made at once, none of them garbage: looking for garbage in between takes longer."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _before(steps: list[int], step: int) -> int:
    at = bisect.bisect_right(steps, step)
    return steps[at - 1] if at else -1
