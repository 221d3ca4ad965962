"""Moving through time: in the recording as far as it reaches, beyond it with the worker.

Moves are made in the order in which they were asked for: while a step runs, the next ones wait for it, so that a key
pressed often and quickly is a step each time. A key that is held down waits for nothing: it steps as fast as steps are
made, and no further than it is held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from stridescope.app import jumps, recorded_points, replay
from stridescope.app.cursor import Cursor
from stridescope.app.session import RUNNING, WAITING, Session
from stridescope.engine.recording.reader import Recording

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
STOP_MS = 420  # from one stop to the next at speed 1
PATIENCE_MS = 400  # how long a move back waits for the step that runs
SURPRISES = ("breakpoint", "error")  # stops after which nothing goes on by itself


class _Move(NamedTuple):
    make: Callable[[], None]
    ahead: bool  # whether at the head it needs the worker


class Stepping(QObject):
    """Steps of the chosen ``grain``, and a player; ``changed`` tells of another grain or speed, ``owing`` of moves.

    Whoever sees the keys says with ``held`` that the next move comes from one that is held down, and with ``settled``
    whether the last move can be seen.
    """

    changed = Signal()
    owing = Signal()
    ran_out = Signal()  # a run through the recording ended where the script waits

    def __init__(self, session: Session, cursor: Cursor, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session, self._cursor = session, cursor
        self.grain = "op"
        self.speed = 1.0
        self._play = QTimer(self)
        self._play.timeout.connect(self._play_on)
        self.held = False
        self.settled: Callable[[], bool] = lambda: True
        self.runs = False  # whether what the worker does now is a step
        self._owed: deque[_Move] = deque()
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS)
        self._patience.timeout.connect(self._go_on)
        session.changed.connect(self._follow)

    # ---- what was asked for, in order --------------------------------------------------------------------------

    @property
    def owed(self) -> int:
        """How many moves wait for the step that runs."""
        return len(self._owed)

    def _ask(self, make: Callable[[], None], *, ahead: bool = True) -> None:
        """Make a move after those that were asked for before; that of a held key only when there are none."""
        held, self.held = self.held, False
        busy = self.runs or self._owed or not self.settled()
        if self._session.recording is not None and not (held and busy):
            self._owed.append(_Move(make, ahead))
            self._go_on()

    def _go_on(self) -> None:
        while self._owed and not self._waits(self._owed[0]):
            self._owed.popleft().make()
        self.owing.emit()

    def _waits(self, move: _Move) -> bool:
        """Say whether a move has to wait for the step that runs; one back does not wait for ever."""
        return self.runs and self._cursor.live and (move.ahead or self._patience.isActive())

    def _follow(self) -> None:
        """A step has ended, or all is over."""
        if self._session.status == RUNNING:
            return
        self.runs = False
        if self._session.status != WAITING or self._session.reason in SURPRISES:
            self._owed.clear()
        self._go_on()

    def look(self, step: int) -> None:
        """Look at ``step``, and no longer at what else was asked for."""
        self._owed.clear()
        self._cursor.look(step)

    def pause(self) -> None:
        """Stop the script as soon as possible, and the player; nothing is owed any more."""
        self._owed.clear()
        self._play.stop()
        self._session.pause()

    def stop(self) -> None:
        """End the script; nothing is owed any more."""
        self._owed.clear()
        self._play.stop()
        self._session.stop()

    # ---- one step ----------------------------------------------------------------------------------------------

    def forward(self, mode: str) -> None:
        """Go to the next stop: in the recording while it reaches that far, else with the worker."""
        grain = self.grain
        self._ask(lambda: self._forward(grain, _taken(grain, mode)))

    def _forward(self, grain: str, mode: str) -> None:
        found = replay.next_stop(self._recording, self._cursor.view, grain, mode)
        if found is not None:
            self._cursor.look(found)
        elif not self._cursor.live:
            self._cursor.look(self._cursor.head)
        elif self._session.status == WAITING:
            self.runs = True
            self._patience.start()
            self._session.step(grain, mode)

    def backward(self, mode: str) -> None:
        """Go to the stop before; nothing is run again."""
        grain = self.grain
        self._ask(lambda: self._backward(grain, _taken(grain, mode)), ahead=False)

    def _backward(self, grain: str, mode: str) -> None:
        found = replay.previous_stop(self._recording, self._cursor.view, grain, mode)
        self._cursor.look(0 if found is None else found)

    @property
    def _recording(self) -> Recording:
        """The recording, without which nothing is asked."""
        assert self._session.recording is not None
        return self._session.recording

    def scrub(self, stops: int) -> None:
        """Move by so many stops, as far as it is recorded."""
        self._ask(lambda: self._scrub(stops), ahead=False)

    def _scrub(self, stops: int) -> None:
        recording, step = self._recording, self._cursor.view
        find, end = (replay.next_stop, self._cursor.head) if stops > 0 else (replay.previous_stop, 0)
        for _ in range(abs(stops)):
            found = find(recording, step, self.grain, "any")
            if found is None:
                step = end
                break
            step = found
        self._cursor.look(step)

    def near(self, step: int) -> None:
        """Look at the stop nearest to ``step``."""
        if self._session.recording is not None:
            self.look(replay.nearest_stop(self._session.recording, step, self.grain))

    def set_grain(self, grain: str) -> None:
        """Choose what a step is."""
        self.grain = grain
        self.changed.emit()

    # ---- many steps --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run to a breakpoint or the end: in the recording first, else with the worker."""
        self._ask(self._run)

    def _run(self) -> None:
        if self._cursor.live:
            self._session.run()
        elif (found := self._recorded_breakpoint()) is not None:
            self._cursor.look(found)
        else:
            self._cursor.look(self._cursor.head)
            if self._session.status == WAITING:
                self.ran_out.emit()

    def run_to(self, source: int, path: str, line: int) -> None:
        """Run until a line is about to run: in the recording where it holds that, else with the worker."""
        self._ask(lambda: self._run_to(source, path, line))

    def _run_to(self, source: int, path: str, line: int) -> None:
        found = replay.stop_at_line(self._recording, self._cursor.view, source, line)
        if found is None and self._cursor.live:
            self._session.run_to(path, line)
        else:
            self._cursor.look(self._cursor.head if found is None else found)

    def run_to_end(self) -> None:
        """Run to the end, past every stop, as soon as the worker waits."""
        self._session.changed.connect(self._run_on)
        self._run_on()

    def _run_on(self) -> None:
        if self._session.status == WAITING:
            self._session.run()

    def _recorded_breakpoint(self) -> int | None:
        """Return the next recorded step at a breakpoint."""
        return recorded_points.next_stop(self._recording, self._session.points.of_run(), self._cursor.view)

    def run_back(self) -> None:
        """Go back to the breakpoint before, or to the beginning; nothing is run again."""
        self._ask(self._run_back, ahead=False)

    def _run_back(self) -> None:
        found = recorded_points.previous_stop(self._recording, self._session.points.of_run(), self._cursor.view)
        self._cursor.look(0 if found is None else found)

    def run_back_to(self, source: int, line: int) -> bool:
        """Go back to where a line was about to run the last time; say whether it ever was."""
        recording = self._session.recording
        found = replay.stop_at_line_before(recording, self._cursor.view, source, line) if recording else None
        if found is not None:
            self.look(found)
        return found is not None

    def run_until(self, kind: str) -> None:
        """Run to the next landmark of a kind: in the recording while it reaches that far, else with the worker."""
        self._ask(lambda: self._run_until(kind))

    def _run_until(self, kind: str) -> None:
        found = jumps.next_landmark(self._recording, self._cursor.view, kind)
        if found is not None:
            self._cursor.look(found)
        elif not self._cursor.live:
            self._cursor.look(self._cursor.head)
        else:
            self._session.run_until(kind)

    def back_until(self, kind: str) -> bool:
        """Go back to the last landmark of a kind; say whether there is one."""
        recording = self._session.recording
        found = jumps.previous_landmark(recording, self._cursor.view, kind) if recording else None
        if found is not None:
            self.look(found)
        return found is not None

    # ---- playing -----------------------------------------------------------------------------------------------

    @property
    def playing(self) -> bool:
        """Whether it plays."""
        return self._play.isActive()

    def toggle_play(self) -> None:
        """Play from here, or hold; at the end of a recording, from its beginning."""
        if self.playing:
            self._play.stop()
            return
        if self._cursor.live and not self._session.live:
            self._cursor.look(0)
        self._play.start(round(STOP_MS / self.speed))

    def change_speed(self, by: int) -> None:
        """Take the next speed; after the fastest comes the slowest."""
        self.speed = SPEEDS[(SPEEDS.index(self.speed) + by) % len(SPEEDS)]
        self._play.setInterval(round(STOP_MS / self.speed))
        self.changed.emit()

    def _play_on(self) -> None:
        if self._session.status == RUNNING:
            return
        if self._cursor.live and self._session.status != WAITING:
            self._play.stop()
            return
        recording = self._session.recording
        found = replay.next_stop(recording, self._cursor.view, self.grain, "any") if recording else None
        if found is None:
            self.forward("over")
        else:
            self._cursor.look(found)


def _taken(grain: str, mode: str) -> str:
    """Who steps by events wants each of them, also those inside an op."""
    return "into" if grain == "event" and mode == "over" else mode
