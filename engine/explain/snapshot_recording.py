"""A memory snapshot of a real training job as a recording: its trace is the script, our allocator does what it says.

Every entry of the trace is a line. Where our allocator would have chosen otherwise than PyTorch's did, the output
says so. The recording can be opened while it is being made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from stridescope.engine.devices.out_of_memory import format_size
from stridescope.engine.devices.snapshot_file import Entry, Snapshot
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

# A listing that an editor still shows at once; the steps after it stay on its last line.
LINES_LISTED = 50_000
FRAME = SOURCE = 1
STDOUT = 1


class RecordedReplay(SnapshotReplay):
    """A replay that also tells on which line it is, and where it differs."""

    def begins(self, number: int) -> None:
        """The entry is the line that is reached."""
        if (emit := self.allocator.log.emit) is not None:
            emit((LineReached.code, FRAME, SOURCE, min(number, LINES_LISTED) + 1))

    def differs(self, difference: Difference) -> None:
        """Print what PyTorch's allocator gave, and ours."""
        super().differs(difference)
        if (emit := self.allocator.log.emit) is not None:
            size = format_size(difference.size)
            text = f"line {difference.entry + 1}, {size}: {difference.recorded}, here {difference.replayed}\n"
            emit((OutputWritten.code, STDOUT, text))


def record_snapshot(
    snapshot: Snapshot,
    device: int,
    name: str,
    path: str | os.PathLike[str],
    conf: str | None = None,
    total: int | None = None,
) -> SnapshotReplay:
    """Replay one device's trace into a new recording; raises RecordingError where the file cannot be made."""
    trace = snapshot.device_traces[device] if device < len(snapshot.device_traces) else []
    facts = {"script": name, "argv": [], "folder": os.getcwd(), "device": "cuda: a real one, from a memory snapshot"}
    writer = Writer(path, facts)
    try:
        journal = Journal()
        writer.add_source(SOURCE, name, "\n".join(listing(trace)) + "\n")
        writer.attach(journal)
        emit = journal.emit
        assert emit is not None
        emit((SourceSeen.code, SOURCE, name))
        emit((FrameEntered.code, FRAME, 0, SOURCE, "<snapshot>", 1))
        replay = RecordedReplay(snapshot, device, conf, total, journal)
        emit((FrameLeft.code, FRAME))
        emit((ScriptEnded.code, 0))
    finally:
        writer.close(0)
    return replay


def listing(trace: list[Entry]) -> Iterator[str]:
    """The trace as text, a line for each entry."""
    for entry in trace[:LINES_LISTED]:
        yield _line(entry)
    if len(trace) > LINES_LISTED:
        yield f"# and {len(trace) - LINES_LISTED} more entries"


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
