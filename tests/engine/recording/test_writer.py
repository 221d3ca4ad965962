"""The writer: what survives a kill, and what it refuses to write over."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time

import pytest
from conftest import emit
from streams import Run, seen

from stridescope.engine.events import Journal, LineReached
from stridescope.engine.recording.reader import Recording, RecordingError
from stridescope.engine.recording.writer import Writer

KILLED = """
import os, signal, sys
from stridescope.engine.events import LineReached, journal
from stridescope.engine.recording.writer import Writer

writer = Writer(sys.argv[1], {})
writer.attach(journal)
for line in range(5000):
    journal.emit(LineReached(1, 1, line).pack())
writer.flush()
journal.emit(LineReached(1, 1, 0).pack())
os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
"""

FORKED = """
import os, sys
from stridescope.engine.events import LineReached, journal
from stridescope.engine.recording.writer import Writer

writer = Writer(sys.argv[1], {})
writer.attach(journal)
journal.emit(LineReached(1, 1, 1).pack())
if os.fork() == 0:
    assert journal.emit is None
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
journal.emit(LineReached(1, 1, 2).pack())
writer.close(0)
"""


def test_a_killed_writer_leaves_everything_flushed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.stride"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60)
    assert done.returncode != 0
    with Recording.open(path) as recording:
        assert recording.steps >= 5000 and not recording.live
        assert recording.state(4999).line == 4999
        assert "status" not in recording.meta
    assert [file.name for file in tmp_path.iterdir()] == ["run.stride"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_does_not_write(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.stride"
    subprocess.run([sys.executable, "-c", FORKED, str(path)], timeout=60, check=True)
    with Recording.open(path) as recording:
        assert [event.pack()[-1] for event in recording.events(0, recording.steps - 1)] == [1, 2]


def test_events_are_readable_soon_without_a_flush(tmp_path: pathlib.Path) -> None:
    writer, journal = Writer(tmp_path / "run.stride", {}), Journal()
    writer.attach(journal)
    emit(journal, [LineReached(1, 1, 1)])
    recording, deadline = Recording.open(tmp_path / "run.stride"), time.monotonic() + 20
    while not recording.refresh() and time.monotonic() < deadline:
        os.sched_yield() if hasattr(os, "sched_yield") else None
    assert recording.steps == writer.steps == 1
    writer.close()


def test_steps_are_counted_before_they_are_flushed(tmp_path: pathlib.Path) -> None:
    writer, journal = Writer(tmp_path / "run.stride", {}), Journal()
    writer.attach(journal)
    emit(journal, [LineReached(1, 1, 1)] * 5000)
    assert writer.steps == 5000
    writer.close()
    assert journal.emit is None


def test_an_older_recording_is_replaced_and_other_files_are_not(tmp_path: pathlib.Path) -> None:
    path, script = tmp_path / "run.stride", tmp_path / "script.py"
    for line in (1, 2):
        writer, journal = Writer(path, {}), Journal()
        writer.attach(journal)
        emit(journal, [LineReached(1, 1, line)])
        writer.close()
    with Recording.open(path) as recording:
        assert recording.events(0, recording.steps - 1) == [LineReached(1, 1, 2)]
    script.write_text("import torch\n")
    with pytest.raises(RecordingError, match="exists and is not a recording"):
        Writer(script, {})
    assert script.read_text() == "import torch\n"


@pytest.mark.parametrize(("name", "fault"), [("", "is a folder"), ("no/run.stride", "there is no folder")])
def test_a_place_that_cannot_be_written(tmp_path: pathlib.Path, name: str, fault: str) -> None:
    with pytest.raises(RecordingError, match=fault):
        Writer(tmp_path / name, {})


def test_a_failing_disk_costs_the_recording_only(tmp_path: pathlib.Path) -> None:
    writer, journal = Writer(tmp_path / "run.stride", {}), Journal()
    writer.attach(journal)
    writer._database.execute("PRAGMA max_page_count = 24")
    for line in range(2000):
        if journal.emit is not None:
            journal.emit((LineReached.code, 1, 1, line * 7919 % 100_003))
        writer.flush()
    assert "stopped at step" in writer.failure and journal.emit is None
    writer.close(status=0)
    with Recording.open(tmp_path / "run.stride") as recording:
        assert 0 < recording.steps < 2000


def test_an_event_that_cannot_be_encoded_costs_the_recording_only(tmp_path: pathlib.Path) -> None:
    writer, journal = Writer(tmp_path / "run.stride", {}), Journal()
    writer.attach(journal)
    emit(journal, [LineReached(1, 1, 1)])
    writer.flush()
    assert journal.emit is not None
    journal.emit((-1, "no event", 1, 1))
    writer.flush()
    assert "stopped at step 1" in writer.failure and journal.emit is None
    writer.close(status=0)
    with Recording.open(tmp_path / "run.stride") as recording:
        assert recording.steps == 1 and recording.meta["failure"] == writer.failure


def test_a_batch_that_cannot_become_columns_stays_as_it_was_written(tmp_path: pathlib.Path) -> None:
    writer, journal = Writer(tmp_path / "run.stride", {}), Journal()
    writer.attach(journal)
    emit(journal, [LineReached(1, 1, 1)])
    writer.flush()
    emit(journal, [LineReached("no number", 1, 1)])  # type: ignore[arg-type]
    writer.flush()
    emit(journal, [LineReached(1, 1, 3)])
    writer.close(status=0)
    assert not writer.failure
    with Recording.open(tmp_path / "run.stride") as recording:
        assert [event.pack()[1:] for event in recording.events(0, 2)] == [(1, 1, 1), ("no number", 1, 1), (1, 1, 3)]
        assert recording.history("frame", 1) == [0, 2]


def test_a_recording_that_grows_reads_like_one_that_has_ended(tmp_path: pathlib.Path) -> None:
    """Batches are rough while it grows, columns afterwards; events, histories and states are the same."""
    writer, journal = Writer(tmp_path / "run.stride", {}), Journal()
    writer.attach(journal)
    emit(journal, Run(4).of_length(3000))
    writer.flush()
    with Recording.open(tmp_path / "run.stride") as growing:
        count = growing.steps
        before = [growing.events(0, count - 1), growing.history("tensor", 7), seen(growing.state(count - 1))]
        writer.close(status=0)
    with Recording.open(tmp_path / "run.stride") as ended:
        assert before == [ended.events(0, count - 1), ended.history("tensor", 7), seen(ended.state(count - 1))]
