"""Moving through time: in the recording as far as it reaches, beyond it with the worker."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from stridescope.app import jumps, recorded_points, replay
from stridescope.app.cursor import Cursor
from stridescope.app.session import RUNNING, WAITING, Session

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
STOP_MS = 420  # from one stop to the next at speed 1


class Stepping(QObject):
    """Steps of the chosen ``grain``, and a player; ``changed`` tells of another grain or speed."""

    changed = Signal()

    def __init__(self, session: Session, cursor: Cursor, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session, self._cursor = session, cursor
        self.grain = "op"
        self.speed = 1.0
        self._play = QTimer(self)
        self._play.timeout.connect(self._play_on)

    # ---- one step ----------------------------------------------------------------------------------------------

    def forward(self, mode: str) -> None:
        """Go to the next stop: in the recording while it reaches that far, else with the worker."""
        recording, mode = self._session.recording, self._taken(mode)
        if recording is None:
            return
        found = replay.next_stop(recording, self._cursor.view, self.grain, mode)
        if found is not None:
            self._cursor.look(found)
        elif not self._cursor.live:
            self._cursor.look(self._cursor.head)
        else:
            self._session.step(self.grain, mode)

    def backward(self, mode: str) -> None:
        """Go to the stop before; nothing is run again."""
        recording = self._session.recording
        if recording is not None:
            found = replay.previous_stop(recording, self._cursor.view, self.grain, self._taken(mode))
            self._cursor.look(0 if found is None else found)

    def _taken(self, mode: str) -> str:
        """Who steps by events wants each of them, also those inside an op."""
        return "into" if self.grain == "event" and mode == "over" else mode

    def scrub(self, stops: int) -> None:
        """Move by so many stops, as far as it is recorded."""
        recording, step = self._session.recording, self._cursor.view
        find, end = (replay.next_stop, self._cursor.head) if stops > 0 else (replay.previous_stop, 0)
        for _ in range(abs(stops) if recording is not None else 0):
            assert recording is not None
            found = find(recording, step, self.grain, "any")
            if found is None:
                step = end
                break
            step = found
        self._cursor.look(step)

    def near(self, step: int) -> None:
        """Look at the stop nearest to ``step``."""
        if self._session.recording is not None:
            self._cursor.look(replay.nearest_stop(self._session.recording, step, self.grain))

    def set_grain(self, grain: str) -> None:
        """Choose what a step is."""
        self.grain = grain
        self.changed.emit()

    # ---- many steps --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run to a breakpoint or the end: in the recording first, else with the worker."""
        if self._session.recording is None:
            return
        if self._cursor.live:
            self._session.run()
        else:
            self._cursor.look(self._recorded_breakpoint() or self._cursor.head)

    def run_to(self, source: int, path: str, line: int) -> None:
        """Run until a line is about to run: in the recording where it holds that, else with the worker."""
        recording = self._session.recording
        if recording is None:
            return
        found = replay.stop_at_line(recording, self._cursor.view, source, line)
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
        recording = self._session.recording
        assert recording is not None
        return recorded_points.next_stop(recording, self._session.points.all, self._cursor.view)

    def run_back(self) -> None:
        """Go back to the breakpoint before, or to the beginning; nothing is run again."""
        recording = self._session.recording
        if recording is not None:
            found = recorded_points.previous_stop(recording, self._session.points.all, self._cursor.view)
            self._cursor.look(0 if found is None else found)

    def run_back_to(self, source: int, line: int) -> bool:
        """Go back to where a line was about to run the last time; say whether it ever was."""
        recording = self._session.recording
        found = replay.stop_at_line_before(recording, self._cursor.view, source, line) if recording else None
        if found is not None:
            self._cursor.look(found)
        return found is not None

    def run_until(self, kind: str) -> None:
        """Run to the next landmark of a kind: in the recording while it reaches that far, else with the worker."""
        recording = self._session.recording
        found = jumps.next_landmark(recording, self._cursor.view, kind) if recording else None
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
            self._cursor.look(found)
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
