"""A memory snapshot of a real training job as a recording: its trace is the script, our allocator does what it says.

Every entry of the trace is a line. Where our allocator would have chosen otherwise than PyTorch's did, the output
says so. The recording can be opened while it is being made.
"""

from __future__ import annotations

import os
from typing import Any

from stridescope.engine.devices.out_of_memory import format_size
from stridescope.engine.devices.snapshot_file import Entry, Progress, Snapshot
from stridescope.engine.devices.snapshot_replay import Difference, SnapshotReplay
from stridescope.engine.events import (
    FrameEntered,
    FrameLeft,
    Journal,
    LineReached,
    OutputWritten,
    ScriptEnded,
    SourceSeen,
)
from stridescope.engine.recording.writer import Writer

# An editor shows so many lines at once: a long trace is listed in several files, and only one of them is shown.
LINES_A_FILE = 500
FRAME = STDOUT = 1


def untold(what: str, done: int, of: int) -> None:
    """The progress that nobody asks for."""


class RecordedReplay(SnapshotReplay):
    """A replay that also tells on which line it is, where it differs, and how far it is."""

    def __init__(self, *replayed: Any, progress: Progress) -> None:
        self._progress = progress
        super().__init__(*replayed)

    def begins(self, number: int) -> None:
        """The entry is the line that is reached."""
        if (emit := self.allocator.log.emit) is not None:
            file, line = divmod(number, LINES_A_FILE)
            emit((LineReached.code, FRAME, file + 1, line + 1))
        if number % LINES_A_FILE == 0:
            self._progress("entries", number, len(self.trace))

    def differs(self, difference: Difference) -> None:
        """Print what PyTorch's allocator gave, and ours."""
        super().differs(difference)
        if (emit := self.allocator.log.emit) is not None:
            size = format_size(difference.size)
            text = f"entry {difference.entry + 1}, {size}: {difference.recorded}, here {difference.replayed}\n"
            emit((OutputWritten.code, STDOUT, text))


def record_snapshot(
    snapshot: Snapshot,
    device: int,
    name: str,
    path: str | os.PathLike[str],
    conf: str | None = None,
    total: int | None = None,
    progress: Progress = untold,
) -> SnapshotReplay:
    """Replay one device's trace into a new recording; raises RecordingError where the file cannot be made."""
    trace = snapshot.device_traces[device] if device < len(snapshot.device_traces) else []
    facts = {"script": name, "argv": [], "folder": os.getcwd(), "device": "cuda: a real one, from a memory snapshot"}
    writer = Writer(path, facts)
    try:
        journal = Journal()
        files = _add_listing(writer, name, trace)
        writer.attach(journal)
        emit = journal.emit
        assert emit is not None
        for number, file in enumerate(files, 1):
            emit((SourceSeen.code, number, file))
        emit((FrameEntered.code, FRAME, 0, 1, "<snapshot>", 1))
        replay = RecordedReplay(snapshot, device, conf, total, journal, progress=progress)
        emit((FrameLeft.code, FRAME))
        emit((ScriptEnded.code, 0))
        progress("keyframes", len(trace), len(trace))
    finally:
        writer.close(0)
    return replay


def _add_listing(writer: Writer, name: str, trace: list[Entry]) -> list[str]:
    """Write the trace out, a line for each entry; returns the names of the files it takes."""
    names = []
    for number, first in enumerate(range(0, max(len(trace), 1), LINES_A_FILE), 1):
        part = trace[first : first + LINES_A_FILE]
        names.append(name if len(part) == len(trace) else f"{name}, entries {first + 1} to {first + len(part)}")
        writer.add_source(number, names[-1], "".join(f"{_line(entry)}\n" for entry in part))
    return names


def _line(entry: Entry) -> str:
    place = f"at {entry['addr']:#x}" if isinstance(entry.get("addr"), int) else ""
    stream = f"stream {entry['stream']}" if entry["stream"] else ""
    words = f"{entry['action']:15} {format_size(entry['size']):>12} {place} {stream}".rstrip()
    frames = entry.get("frames")
    if isinstance(frames, list) and frames and isinstance(frames[0], dict):
        first = frames[0]
        file = os.path.basename(str(first.get("filename", "")))
        return f"{words:60} # {first.get('name', '')}, {file}:{first.get('line', '')}"
    return words
