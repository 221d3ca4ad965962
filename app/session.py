"""One session: a script that a worker runs, or a recording that is only looked at. Never blocks the window.

The worker writes the recording; the session watches it grow and moves the head. Commands go to the worker, its small
replies come back here and become signals.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QSocketNotifier, QTimer, Signal

from stridescope.app.points import Points
from stridescope.app.program import Program
from stridescope.app.snapshot_import import PICKLE_MARK, SnapshotImport
from stridescope.app.text import tr
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.store import RecordingError
from stridescope.engine.worker import protocol
from stridescope.engine.worker.client import WorkerClient

EMPTY, STARTING, WAITING, RUNNING, ENDED, REPLAY = "empty", "starting", "waiting", "running", "ended", "replay"
IMPORTING = "importing"
WATCH_MS = 60
RELATIVE = "attempted relative import with no known parent package"
_SQLITE = b"SQLite format 3\x00"


class Session(QObject):
    """``status`` is one of EMPTY, STARTING, WAITING (at a stop), RUNNING, ENDED, IMPORTING (a snapshot), REPLAY."""

    changed = Signal()
    grown = Signal()
    failed = Signal(str)
    told = Signal(str)
    answered = Signal(int, str, bool)
    completed = Signal(int, tuple)
    inspected = Signal(object)
    input_wanted = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.status = EMPTY
        self.program: Program | None = None
        self.recording: Recording | None = None
        self.points = Points(self)
        self.points.changed.connect(self._send_points)
        self.memory_limit = 0  # bytes that a script may hold, 0 for no limit; holds from the next start on
        self.step_into: tuple[str, ...] = ()  # packages that are stepped into, likewise
        self.parents: list[str] = []  # recordings of the runs that this one was forked from, the last one last
        self._client: WorkerClient | None = None
        self._notifier: QSocketNotifier | None = None
        self._import: SnapshotImport | None = None
        self._folder: str | None = None
        self._path = ""
        self.reason = ""  # why the script stopped last
        self._until = False  # whether the script runs to a place that was asked for, and need not say why it stops
        self._watch = QTimer(self, interval=WATCH_MS)
        self._tidy = QTimer(self, interval=WATCH_MS)
        self._tidy.timeout.connect(self._leave)
        self._watch.timeout.connect(self._look)
        self._watch.timeout.connect(self._receive)  # a worker that cannot answer a pause is found by the client

    # ---- what can be opened ------------------------------------------------------------------------------------

    def open(self, path: str, argv: tuple[str, ...] = (), device: str = "auto") -> bool:
        """Open a script or a recording, by what the file holds; says why not with ``failed``."""
        program = Program(os.path.abspath(path), argv, device)
        if os.path.isfile(os.path.join(path, "__main__.py")):
            return self.start(program)
        try:
            with open(path, "rb") as file:
                head = file.read(len(_SQLITE))
        except OSError as error:
            self.failed.emit(tr("{path} cannot be opened: {why}", path=path, why=error.strerror or error))
            return False
        if head == _SQLITE or path.endswith(".stride"):
            return self._open_recording(path)
        if head.startswith(PICKLE_MARK):
            return self._replay_snapshot(path)
        if b"\0" in head:
            self.failed.emit(tr("{path} is neither a Python script nor a recording", path=path))
            return False
        return self.start(program)

    def fork(self, step: int) -> bool:
        """Run the program again up to a step of this run and stop there; this run's recording is kept beside."""
        if self.program is None or self.recording is None:
            return False
        kept = str(Path(tempfile.mkdtemp(prefix="stridescope-"), Path(self.recording.path).name))
        try:
            _copy_recording(self.recording.path, kept)
        except OSError as error:
            self.failed.emit(tr("{path} cannot be written: {why}", path=kept, why=error.strerror or error))
            return False
        parents = [*self.parents, kept]
        self.start(dataclasses.replace(self.program, until_step=step), parents)
        return True

    def open_parent(self) -> bool:
        """Open the recording of the run that this one was forked from."""
        if not self.parents:
            return False
        *others, last = self.parents
        self.parents = []
        opened = self._open_recording(last)
        self.parents = others
        return opened

    def close(self) -> None:
        """End the worker and forget the recording; a temporary one is removed."""
        self._forget_parents()
        self._let_go()
        if self.recording is not None:
            self.recording.close()
        self.recording = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        self._set_status(EMPTY)

    def _forget_parents(self) -> None:
        for path in self.parents:
            shutil.rmtree(Path(path).parent, ignore_errors=True)
        self.parents = []

    def save_as(self, path: str) -> None:
        """Copy the recording, complete up to now."""
        if self.recording is None:
            return
        try:
            _copy_recording(self.recording.path, path)
        except OSError as error:
            self.failed.emit(tr("{path} cannot be written: {why}", path=path, why=error.strerror or error))

    def _open_recording(self, path: str) -> bool:
        try:
            recording = Recording.open(path)
        except RecordingError as error:
            self.failed.emit(str(error))
            return False
        self.close()
        self.program, self.recording = None, recording
        self.points.open(str(recording.meta.get("script", path)))
        self._set_status(REPLAY)
        if recording.live:
            self._watch.start()
        self.grown.emit()
        return True

    def _replay_snapshot(self, path: str) -> bool:
        """Let a memory snapshot of PyTorch become a recording, and watch that one grow."""
        self.close()
        self.program = None
        self._folder = tempfile.mkdtemp(prefix="stridescope-")
        self._path = str(Path(self._folder, Path(path).stem + ".stride"))
        self._import = SnapshotImport(path, self._path, self)
        self._import.done.connect(self._imported)
        self._import.progress.connect(self.told)
        self._set_status(IMPORTING)
        self._watch.start()
        return True

    def _imported(self, fault: str) -> None:
        if fault:
            self._let_go()
            self._set_status(EMPTY)
            self.failed.emit(fault)
        else:
            self._stop_importing()

    def _stop_importing(self) -> None:
        """Leave it at what was replayed up to now; with its keyframes every step of a whole recording is near."""
        self._let_go()
        self._look()
        self._reopen()
        self._set_status(EMPTY if self.recording is None else REPLAY)
        self.told.emit("")
        self.grown.emit()

    def start(self, program: Program, parents: list[str] | None = None) -> bool:
        """Run a program, in place of what is open; ``parents`` are the recordings that it is forked from."""
        kept, self.parents = (self.parents if parents is None else parents), []
        self.close()
        self.program, self.parents = program, kept if parents is not None else []
        self.points.open(program.path)
        self._folder = tempfile.mkdtemp(prefix="stridescope-")
        self._path = str(Path(self._folder, Path(program.path).stem + ".stride"))
        self._client = WorkerClient.start(
            program.module or program.path,
            program.argv,
            self._path,
            **program.start_options(),
            breakpoints=self.points.enabled,
            memory_limit=self.memory_limit,
            step_into=self.step_into,
        )
        self._notifier = QSocketNotifier(self._client.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._receive)
        self._set_status(STARTING)
        return True

    # ---- what can be asked -------------------------------------------------------------------------------------

    @property
    def live(self) -> bool:
        """Whether a worker is there."""
        return self.status in (STARTING, WAITING, RUNNING)

    @property
    def of_memory(self) -> bool:
        """Whether it is a memory snapshot that is read or shown."""
        device = self.recording.meta.get("device") if self.recording else ""
        return self.status == IMPORTING or str(device).endswith("memory snapshot")

    @property
    def script(self) -> str:
        """The script's path, also that of a recording that is only looked at."""
        if self.program is not None:
            return self.program.path
        return str(self.recording.meta.get("script", self.recording.path)) if self.recording else ""

    def step(self, grain: str, mode: str) -> None:
        """Run to the next stop."""
        self._go(protocol.Step(grain, mode))  # type: ignore[arg-type]

    def run(self) -> None:
        """Run to a breakpoint or the end."""
        self._go(protocol.Run())

    def run_to(self, path: str, line: int) -> None:
        """Run until a line is reached."""
        self._go(protocol.RunTo(path, line))
        self._until = True

    def pause(self) -> None:
        """Stop as soon as possible."""
        self._send(protocol.Pause())

    def stop(self) -> None:
        """End the script, or the import of a snapshot; the recording stays."""
        if self.status == IMPORTING:
            self._stop_importing()
        self._send(protocol.Stop())

    def send_input(self, text: str) -> None:
        """Give the script a line of its standard input."""
        self._send(protocol.SendInput(text))

    def evaluate(self, number: int, text: str) -> None:
        """Evaluate a text where the script stands; the answer comes as ``answered``."""
        self._send(protocol.Evaluate(number, text))

    def watch(self, number: int, text: str) -> None:
        """Evaluate an expression where the script stands and record nothing of it; the answer comes as ``answered``."""
        self._send(protocol.Evaluate(number, text, recorded=False))

    def complete(self, number: int, text: str) -> None:
        """Ask how a half-written text could go on; the answer comes as ``completed``."""
        self._send(protocol.Complete(number, text))

    def inspect(self, wanted: protocol.Inspect) -> None:
        """Ask what is inside a value; the answer comes as ``inspected``."""
        self._send(wanted)

    @property
    def breakpoints(self) -> dict[str, set[int]]:
        """The lines with breakpoints, by file."""
        return self.points.lines()

    def run_until(self, kind: str) -> None:
        """Run to the next of something: a kind of breakpoint, good for once."""
        self._go(protocol.RunUntil(protocol.Breakpoint(kind=kind)))
        self._until = True

    def _send_points(self) -> None:
        if self.live:
            self._send(protocol.SetBreakpoints(self.points.enabled))
        self.changed.emit()

    def _go(self, command: protocol.Command) -> None:
        self._until = False
        if self.status == WAITING:
            self._send(command)
            self._set_status(RUNNING)

    def _send(self, command: protocol.Command) -> None:
        if self._client is not None:
            self._client.send(command)

    # ---- what comes back ---------------------------------------------------------------------------------------

    def _receive(self) -> None:
        client = self._client
        for reply in client.receive() if client is not None else ():
            self._take(reply)

    def _take(self, reply: Any) -> None:
        match reply:
            case protocol.Running():
                self._set_status(RUNNING)
                self._watch.start()
            case protocol.Stopped(step, reason, detail):
                self._stopped(step, reason, detail)
            case protocol.Evaluated(number, text, ok, _):
                self._look()
                self.answered.emit(number, text, ok)
            case protocol.Counted(points, hits):
                self.points.count(points, hits)
            case protocol.Completed(number, names):
                self.completed.emit(number, names)
            case protocol.Inspected():
                self.inspected.emit(reply)
            case protocol.InputWanted():
                self._look()
                self.input_wanted.emit()
            case protocol.Busy(text):
                self.told.emit(text)
            case protocol.Ended():
                self._end(reply)
            case protocol.Failed(message):
                self._refused(message)

    def _stopped(self, step: int, reason: str, detail: str) -> None:
        self._look()
        self._watch.stop()
        self.reason = reason
        self._set_status(WAITING)
        if reason == "error":
            self.failed.emit("\n".join(filter(None, (detail, self._advice(detail)))))
        elif reason == "breakpoint" and not self._until:
            self.told.emit(tr("Breakpoint: {what}", what=detail))

    def _advice(self, failure: str) -> str:
        """Return what to do about a failure that comes from how the program is run; "" about any other."""
        program = self.program
        if RELATIVE not in failure or program is None or program.module or not program.in_package:
            return ""
        return tr("Run it as a module of its package: Run › Run as a module")

    def _end(self, reply: protocol.Ended) -> None:
        crash = self._client.crash if self._client is not None else ""
        self._look()
        self._watch.stop()
        if self._notifier is not None:
            self._notifier.setEnabled(False)
        self._set_status(ENDED)
        self.grown.emit()
        self._tidy.start()
        if reply.reason == "killed":
            text = tr("The worker died (status {status}); what it recorded up to there is kept.", status=reply.status)
            self.failed.emit("\n".join(filter(None, (text, crash))))
        elif reply.reason == "memory":
            self.failed.emit(
                tr("The script passed its memory limit and was ended; everything up to there is recorded.")
            )

    @property
    def tidying(self) -> bool:
        """Whether the script is over, but its worker still adds keyframes to the recording."""
        return self.status == ENDED and self._client is not None

    def _leave(self) -> None:
        """Let the worker go when it is done, and open the recording anew: with keyframes every step is near."""
        if self._client is not None and self._client.process.poll() is not None:
            self._let_go()
            self._reopen()
            self.changed.emit()
            self.grown.emit()

    def _reopen(self) -> None:
        if self.recording is None:
            return
        try:
            finished = Recording.open(self.recording.path)
        except RecordingError:
            return
        self.recording.close()
        self.recording = finished

    def _refused(self, message: str) -> None:
        if self.status == STARTING:
            self._let_go()
            self._set_status(EMPTY)
        self.failed.emit(message)

    def _look(self) -> None:
        """Take in what the recording has grown by."""
        if self.recording is None and not self._open_growing():
            return
        assert self.recording is not None
        before = self.recording.steps
        try:
            self.recording.refresh()
        except RecordingError as error:
            self._watch.stop()
            self.failed.emit(str(error))
            return
        if self.recording.steps != before:
            self.grown.emit()
        if self.status == REPLAY and not self.recording.live:
            self._watch.stop()

    def _open_growing(self) -> bool:
        try:
            self.recording = Recording.open(self._path)
        except RecordingError:
            return False  # the worker has not made it yet
        self.grown.emit()
        return True

    def _let_go(self) -> None:
        self._watch.stop()
        self._tidy.stop()
        if self._import is not None:
            self._import.stop()
            self._import.deleteLater()
            self._import = None
        if self._notifier is not None:
            self._notifier.setEnabled(False)
            self._notifier.deleteLater()
        if self._client is not None:
            self._client.close()
        self._notifier = self._client = None

    def _set_status(self, status: str) -> None:
        if status != self.status:
            self.status = status
            self.changed.emit()


def _copy_recording(source: str, target: str) -> None:
    """Copy an SQLite file that may still be written, with its newest pages."""
    import sqlite3
    from contextlib import closing

    Path(target).unlink(missing_ok=True)
    try:
        with (
            closing(sqlite3.connect(f"{Path(source).as_uri()}?mode=ro", uri=True)) as here,
            closing(sqlite3.connect(target)) as there,
        ):
            here.backup(there)
    except sqlite3.Error as error:
        raise OSError(str(error)) from error
