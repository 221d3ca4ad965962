"""What a recording answers, and how it answers to files that are none."""

from __future__ import annotations

import pathlib
import shutil
import sqlite3

import numpy as np
import pytest
from conftest import Record, emit
from streams import Run

from stridescope.engine.events import (
    BlockAllocated,
    BlockAwaitsEvent,
    BlockFreed,
    Event,
    Journal,
    LineReached,
    NameBound,
    NodeBegan,
    OpBegan,
    OutputWritten,
    ScriptEnded,
    SegmentAllocated,
    SourceSeen,
    StorageMade,
    StorageWritten,
    TensorMade,
    VersionBumped,
)
from stridescope.engine.events.bundles import INLINE
from stridescope.engine.recording.reader import Recording, RecordingError
from stridescope.engine.recording.values import CHUNK
from stridescope.engine.recording.writer import Writer

OP = OpBegan("aten::mul", (4, 5), (), 1, 1, 1, 0, 1, 5)


def test_stops_by_grain(record: Record) -> None:
    lines: list[Event] = [LineReached(1, 1, 1), NameBound(1, "x", 0, "3"), OP, LineReached(1, 1, 2)]
    recording = record([*lines, NodeBegan(3, ()), VersionBumped(7, 1), ScriptEnded(0)])
    assert recording.lines().tolist() == [0, 3]
    assert recording.ops().tolist() == [2]
    assert recording.backwards().tolist() == [4]
    assert recording.stops("line").tolist() == [0, 3, 6]
    assert recording.stops("op").tolist() == [2, 4, 6]
    assert recording.stops("event").tolist() == [0, 2, 3, 4, 5, 6]


def test_output_up_to_a_step(record: Record) -> None:
    recording = record([OutputWritten(1, "a\n"), LineReached(1, 1, 1), OutputWritten(2, "b\n")])
    assert [(out.stream, out.text) for out in recording.output(1)] == [(1, "a\n")]
    assert [(out.stream, out.text) for out in recording.output(2)] == [(1, "a\n"), (2, "b\n")]


def test_history_of_tensor_and_storage(record: Record) -> None:
    events = [
        StorageMade(6, 8, "cpu", 64),
        TensorMade(5, 6, (2,), (1,), 0, "float32", 0, 7, False),
        StorageWritten(6, 0, b"12345678"),
        OP,
        VersionBumped(7, 1),
        LineReached(1, 1, 5),
        TensorMade(8, 6, (2,), (1,), 0, "float32", 5, 7, False),
    ]
    recording = record(events, flushes=[2, 4])
    assert recording.history("tensor", 5) == [1, 3, 4, 6]
    assert recording.history("storage", 6) == [0, 1, 2, 6]
    assert recording.history("tensor", 99) == []


def test_history_agrees_with_the_events(record: Record) -> None:
    events = Run(1).of_length(5000)
    recording = record(events, flushes=[100, 2000])
    storage = next(event.storage for event in events if isinstance(event, StorageMade))
    expected = [step for step, event in enumerate(events) if getattr(event, "storage", 0) == storage]
    assert recording.history("storage", storage) == expected


def test_the_allocator_curve_follows_the_state(record: Record) -> None:
    events = Run(2).of_length(6000)
    recording = record(events, flushes=[1000])
    steps, allocated, reserved = recording.allocator_curve(5000)
    assert len(steps) > 100 and steps[-1] <= 5000
    for index in range(0, len(steps), 40):
        allocator = recording.state(int(steps[index])).allocator
        assert allocated[index] == allocator.count("allocated_bytes.current")
        assert reserved[index] == allocator.count("reserved_bytes.current")


def test_a_block_that_waits_is_counted_off_once(record: Record) -> None:
    recording = record(
        [
            SegmentAllocated("cuda:0", 4096, 2048, "small", 0),
            BlockAllocated("cuda:0", 4096, 2048, 9, 0, 0),
            BlockAwaitsEvent("cuda:0", 4096, 1, 1),
            BlockFreed("cuda:0", 4096, 2048),
        ]
    )
    assert [column.tolist() for column in recording.allocator_curve()] == [
        [0, 1, 2, 3],
        [0, 2048, 0, 0],
        [2048, 2048, 2048, 2048],
    ]


def test_large_values_are_kept_once(record: Record) -> None:
    made = [StorageMade(storage, 4096, "cpu", 0) for storage in range(1, 6)]
    recording = record([*made, *(StorageWritten(storage, 0, b"v" * 4096) for storage in range(1, 6))])
    assert recording.state(9).storages[5].values == b"v" * 4096
    assert recording.event(9) == StorageWritten(5, 0, b"v" * 4096)
    with sqlite3.connect(recording.path) as database:
        assert database.execute("SELECT count(*) FROM blob").fetchone() == (1,)


def test_values_kept_apart_are_what_was_written_in_whichever_chunk_and_flush(record: Record) -> None:
    lengths = [INLINE, INLINE + 1, 5_000, CHUNK - 1, CHUNK, 3 * CHUNK, *range(300, 60_000, 700)]
    kept = [bytes([number % 251, number % 13]) * (length // 2) for number, length in enumerate(lengths)]
    made = [StorageMade(number, len(values), "cpu", 0) for number, values in enumerate(kept, 1)]
    written = [StorageWritten(number, 0, values) for number, values in enumerate(kept, 1)]
    events = [*made, *written, *reversed(written)]
    recording = record(events, flushes=range(len(made), len(events), 17))
    assert recording.events(0, len(events) - 1) == events
    storages = recording.state(len(events) - 1).storages
    assert [storages[number].values for number in range(1, len(kept) + 1)] == kept


def test_sources_hold_the_text_of_the_files(record: Record, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("x = 'é'\n", encoding="utf-8")
    recording = record([SourceSeen(1, str(script)), SourceSeen(2, str(tmp_path / "gone.py"))])
    assert recording.sources[1].text == "x = 'é'\n" and list(recording.sources) == [1]


def test_meta_and_end(record: Record) -> None:
    recording = record([LineReached(1, 1, 1)], script="train.py", argv=["--fast"])
    assert (recording.meta["script"], recording.meta["argv"]) == ("train.py", ["--fast"])
    assert recording.meta["status"] == 0 and not recording.live


def test_marks_and_layouts_are_kept_with_the_recording(record: Record) -> None:
    recording = record([LineReached(1, 1, 1)] * 9)
    first = recording.add_mark(5, "chapter", {"title": "Backward"})
    recording.add_mark(2, "note", {"text": "look"})
    assert [(mark.step, mark.kind, mark.body) for mark in recording.marks()] == [
        (2, "note", {"text": "look"}),
        (5, "chapter", {"title": "Backward"}),
    ]
    recording.remove_mark(first)
    recording.keep_layout("lecture", {"panels": ["graph"]})
    with Recording.open(recording.path) as again:
        assert [mark.step for mark in again.marks()] == [2]
        assert again.layout("lecture") == {"panels": ["graph"]} and again.layout("other") is None


def test_steps_out_of_range(record: Record) -> None:
    recording = record([LineReached(1, 1, 1)])
    assert recording.state(-1).frames == []
    for ask in (lambda: recording.state(1), lambda: recording.state(-2), lambda: recording.event(1)):
        with pytest.raises(IndexError):
            ask()


def test_a_growing_recording_is_readable(tmp_path: pathlib.Path) -> None:
    events = Run(5).of_length(4000)
    writer, journal = Writer(tmp_path / "run.stride", {}), Journal()
    writer.attach(journal)
    emit(journal, events[:1000])
    assert writer.flush() == 1000
    recording = Recording.open(tmp_path / "run.stride")
    assert recording.live and recording.steps == 1000
    before = recording.state(900)
    emit(journal, events[1000:])
    writer.flush()
    assert recording.refresh() == 4000 and recording.state(900) is before
    assert recording.state(3999).step == 3999
    writer.close(status=0)
    recording.refresh()
    assert not recording.live and recording.steps == 4000
    recording.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.stride"]


# ---- what is no recording ----------------------------------------------------------------------------------------


def refused(path: pathlib.Path) -> str:
    with pytest.raises(RecordingError) as error:
        recording = Recording.open(path)
        recording.state(recording.steps - 1)
        recording.events(0, recording.steps - 1)
    assert "\n" not in str(error.value) and str(path) in str(error.value)
    return str(error.value)


def test_what_is_no_recording_is_refused(tmp_path: pathlib.Path) -> None:
    foreign, empty, database = tmp_path / "a.stride", tmp_path / "b.stride", tmp_path / "c.stride"
    foreign.write_bytes(b"\x89PNG" * 100)
    empty.write_bytes(b"")
    with sqlite3.connect(database) as other:
        other.execute("CREATE TABLE meta (name, value)")
    assert "is not a Stridescope recording" in refused(foreign)
    assert "is empty" in refused(empty)
    assert "is not a Stridescope recording" in refused(database)
    assert "is a folder" in refused(tmp_path)
    assert "there is no file" in refused(tmp_path / "none.stride")


def test_keyframes_are_kept_and_those_of_another_version_left_alone(record: Record) -> None:
    recording = record(Run(4).of_length(5000))
    state = repr(recording.state(4900).tensors)
    recording.close()
    with sqlite3.connect(recording.path) as database:
        assert database.execute("SELECT count(*) FROM keyframe").fetchone()[0] >= 3
        database.execute("UPDATE keyframe SET state = x'00'")
        database.execute("UPDATE meta SET value = '[]' WHERE name = 'keyframes'")
    with Recording.open(recording.path) as again:
        assert repr(again.state(4900).tensors) == state


def test_a_newer_format_is_refused_in_one_line(record: Record) -> None:
    recording = record([LineReached(1, 1, 1)])
    recording.close()
    with sqlite3.connect(recording.path) as database:
        database.execute("PRAGMA user_version = 99")
    assert "newer Stridescope (format 99" in refused(pathlib.Path(recording.path))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.99])
def test_a_file_that_is_cut_short_is_refused(record: Record, share: float) -> None:
    recording = record(Run(0).of_length(5000))
    recording.close()
    path = pathlib.Path(recording.path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    assert "cut short" in refused(path) or "not a Stridescope" in refused(path)


def test_a_file_with_rotten_bytes_is_refused_where_they_matter(record: Record) -> None:
    recording = record(Run(0).of_length(9000))
    recording.close()
    path = pathlib.Path(recording.path)
    whole, refusals = path.read_bytes(), []
    for seed in range(40):
        rotten = bytearray(whole)
        spot = 4096 + (len(whole) - 8192) * seed // 40
        rotten[spot : spot + 2048] = np.random.default_rng(seed).bytes(2048)
        path.write_bytes(rotten)
        try:
            with Recording.open(path) as opened:
                opened.events(0, opened.steps - 1)
                opened.state(opened.steps - 1)
                opened.state(opened.steps // 2)
                opened.marks()
        except RecordingError as error:
            refusals.append(str(error))
    assert len(refusals) > 20 and not any("\n" in refusal for refusal in refusals)


def test_a_read_only_folder_will_do(record: Record, tmp_path: pathlib.Path) -> None:
    recording = record([LineReached(1, 1, 1)])
    recording.close()
    folder = tmp_path / "medium"
    folder.mkdir()
    shutil.copy(recording.path, folder / "run.stride")
    folder.chmod(0o500)
    try:
        assert Recording.open(folder / "run.stride").steps == 1
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("seed", range(60))
def test_flipped_bits_do_no_worse_than_one_clear_line(record: Record, seed: int) -> None:
    recording = record(Run(0).of_length(300))
    recording.close()
    path, chance = pathlib.Path(recording.path), np.random.default_rng(seed)
    rotten = bytearray(path.read_bytes())
    for spot in chance.integers(0, len(rotten), 20):
        rotten[spot] ^= 1 << int(chance.integers(8))
    path.write_bytes(rotten)
    try:
        with Recording.open(path) as opened:
            opened.allocator_curve()
            opened.events(0, opened.steps - 1)
            opened.state(opened.steps // 2)
            opened.output(opened.steps - 1)
    except RecordingError as error:
        assert "\n" not in str(error)


def test_the_memory_curve_is_kept_with_a_recording_and_made_for_one_without(record: Record) -> None:
    recording = record(Run(3).of_length(9000))
    whole = [column.tolist() for column in recording.allocator_curve()]
    assert recording.read_curve(0) and whole[0] and whole[0] == sorted(whole[0])
    recording.close()
    with sqlite3.connect(recording.path) as database:
        database.execute("DROP TABLE curve")
    with Recording.open(recording.path) as older:
        assert not older.read_curve(0) and older.curve_so_far()[0].tolist() == []
        assert not older.read_curve(1) and 0 < len(older.curve_so_far()[0]) < len(whole[0])
        assert [column.tolist() for column in older.allocator_curve()] == whole
