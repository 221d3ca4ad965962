"""A memory snapshot of PyTorch opens as a recording: a process replays it while the window watches it grow."""

from __future__ import annotations

import os
import sys

from PySide6.QtCore import QObject, QProcess, Signal

from stridescope.app.text import tr
from stridescope.app.values import size_text

# How every pickle since protocol 2 begins.
PICKLE_MARK = b"\x80"


class SnapshotImport(QObject):
    """Runs ``stridescope replay SNAPSHOT -o RECORDING``; ``done`` says what went wrong, or nothing.

    ``progress`` says in words how far it is.
    """

    done = Signal(str)
    progress = Signal(str)

    def __init__(self, snapshot: str, recording: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name = os.path.basename(snapshot)
        self._process = QProcess(self)
        self._process.finished.connect(self._finished)
        self._process.errorOccurred.connect(self._failed)
        self._process.readyReadStandardOutput.connect(self._told)
        command = ["-P", "-m", "stridescope.app.cli"] if not getattr(sys, "frozen", False) else []
        replay = [*command, "replay", os.path.abspath(snapshot), "-o", recording, "--progress"]
        self._process.start(sys.executable, replay)

    def stop(self) -> None:
        """End the process, if it still runs."""
        self._process.blockSignals(True)
        self._process.kill()
        self._process.waitForFinished(1000)

    def _told(self) -> None:
        """Take the last whole line of progress; what the command prints at its end is not for the window."""
        lines = bytes(self._process.readAllStandardOutput().data()).decode(errors="replace").splitlines()
        told = [words for line in lines if len(words := line.split()) == 4 and words[0] == "progress"]
        if told:
            _, what, done, of = told[-1]
            self.progress.emit(_words(self._name, what, int(done), int(of)))

    def _finished(self, status: int) -> None:
        words = bytes(self._process.readAllStandardError().data()).decode(errors="replace").strip()
        self.done.emit(words.removeprefix("stridescope replay: ") if status else "")

    def _failed(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self.done.emit(tr("The replay could not be started: {why}", why=self._process.errorString()))


def _words(name: str, what: str, done: int, of: int) -> str:
    if what == "bytes":
        return tr("Reading {name}: {done} of {of} (Shift+F5 stops)", name=name, done=size_text(done), of=size_text(of))
    if what == "entries":
        counts = {"done": f"{done:,}", "of": f"{of:,}"}
        return tr("Replaying {name}: {done} of {of} entries (Shift+F5 stops)", name=name, **counts)
    return tr("Preparing {name} for quick jumps (Shift+F5 stops)", name=name)
