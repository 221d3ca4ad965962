"""A memory snapshot of PyTorch opens as a recording: a process replays it while the window watches it grow."""

from __future__ import annotations

import os
import sys

from PySide6.QtCore import QObject, QProcess, Signal

from stridescope.app.text import tr

# How every pickle since protocol 2 begins.
PICKLE_MARK = b"\x80"


class SnapshotImport(QObject):
    """Runs ``stridescope replay SNAPSHOT -o RECORDING``; ``done`` says what went wrong, or nothing."""

    done = Signal(str)

    def __init__(self, snapshot: str, recording: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._process = QProcess(self)
        self._process.finished.connect(self._finished)
        self._process.errorOccurred.connect(self._failed)
        command = ["-P", "-m", "stridescope.app.cli"] if not getattr(sys, "frozen", False) else []
        self._process.start(sys.executable, [*command, "replay", os.path.abspath(snapshot), "-o", recording])

    def stop(self) -> None:
        """End the process, if it still runs."""
        self._process.blockSignals(True)
        self._process.kill()
        self._process.waitForFinished(1000)

    def _finished(self, status: int) -> None:
        words = bytes(self._process.readAllStandardError().data()).decode(errors="replace").strip()
        self.done.emit(words.removeprefix("stridescope replay: ") if status else "")

    def _failed(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self.done.emit(tr("The replay could not be started: {why}", why=self._process.errorString()))
