"""Going to a step: from the nearest known machine, forward.

Known machines are the one at the cursor, the keyframes of the file, those made here where the file has none yet
(it still grows, or its writer was killed), and a few waypoints near the places visited last, for stepping back.
"""

from __future__ import annotations

import bisect
import contextlib
import gc
import sqlite3
import time
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
_ALIVE_PER_EVENT = 2  # the more is alive, the further apart
_MOST_ALIVE = 2_000_000  # records that those in memory may hold together, some hundred bytes each
_WAYPOINTS_APART = 128
_WAYPOINTS_BEFORE = 256
_WAYPOINTS = 32
_AT_ONCE = 1024  # events between two looks at the clock


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
        self._alive = 0
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

    @property
    def at(self) -> int:
        """The step that was reached last."""
        return self._machine.step

    def approach(self, step: int, seconds: float) -> bool:
        """Come nearer to ``step`` for about so long, and say whether it is near now: :meth:`state` takes no time then.

        What lies on the way is only passed: no state is made of it.
        """
        until, goal = time.perf_counter() + seconds, step - _WAYPOINTS_BEFORE
        if step in self._states or self._far(step) <= 2 * _WAYPOINTS_BEFORE:
            return True
        with _collected_later():
            machine = self._machine = self._nearest(goal)
            while machine.step < goal and time.perf_counter() < until:
                self._pass(machine, min(goal, machine.step + _AT_ONCE))
        return machine.step >= goal

    def _far(self, step: int) -> int:
        """Return how many events lie between the nearest known machine and ``step``."""
        return step - max(self._known(step))

    def _go(self, step: int) -> State:
        machine = self._machine = self._nearest(step)
        while machine.step < step:
            self._pass(machine, step, lay=True)
        return machine.snapshot()

    def _pass(self, machine: Machine, step: int, *, lay: bool = False) -> None:
        """Move on towards ``step`` within one batch, and where wanted ``lay`` waypoints on the way."""
        first = self._firsts[bisect.bisect_right(self._lasts, machine.step)]
        wires = self._batches.wires(first)[machine.step + 1 - first : step + 1 - first]
        if lay:
            self._advance(machine, wires, step)
        else:
            advance(machine, wires)
        self._keep_keyframe(machine)

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
        here, way, made, stored = self._known(step)
        nearest = max(here, way, made, stored)
        if nearest == here:
            return self._machine if here >= 0 else Machine()
        if nearest == way:
            return self._waypoints[way].twin()
        if nearest == made:
            return self._made[made].twin()
        return self._read_keyframe(stored)

    def _known(self, step: int) -> tuple[int, int, int, int]:
        """Return the nearest steps up to ``step`` of the machine, the waypoints, the keyframes made here and stored."""
        here = self._machine.step if self._machine.step <= step else -1
        way = max((at for at in self._waypoints if at <= step), default=-1)
        return here, way, _before(self._made_steps, step), _before(self._stored, step)

    def _read_keyframe(self, step: int) -> Machine:
        database = self._database
        row = database and database.execute("SELECT state FROM keyframe WHERE step = ?", (step,)).fetchone()
        if not row:
            raise DamagedBatch(f"the keyframe of step {step} is missing")
        return keyframes.decode_machine(row[0], self._batches.load)

    def _keep_keyframe(self, machine: Machine) -> None:
        """Keep a machine that is far from those known; when all of them hold too much, let every other one go."""
        step, alive = machine.step, keyframes.alive(machine)
        last = max(_before(self._made_steps, step), _before(self._stored, step))
        if step - last < max(_MADE_APART, alive // _ALIVE_PER_EVENT):
            return
        self._made[step] = machine.twin()
        bisect.insort(self._made_steps, step)
        self._alive += alive
        if self._alive > _MOST_ALIVE:
            for old in self._made_steps[-2::-2]:
                del self._made[old]
            self._made_steps = sorted(self._made)
            self._alive = sum(map(keyframes.alive, self._made.values()))


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
