"""A memory snapshot of PyTorch opens in the window as a recording; a bad one is refused in one line."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from stridescope.app.main_window import MainWindow
from stridescope.app.session import EMPTY, IMPORTING, REPLAY, Session
from stridescope.engine.devices.memory_history import MemoryHistory
from stridescope.engine.devices.simulated import SimulatedGPU
from stridescope.engine.devices.snapshot import snapshot
from stridescope.engine.devices.snapshot_file import dump_snapshot

PATIENCE = 60_000  # milliseconds


@pytest.fixture
def session(qtbot: QtBot) -> Iterator[Session]:
    made = Session()
    yield made
    made.close()


def job(path: Path, entries: int) -> Path:
    """A snapshot of a job that takes and gives back memory, with so many entries in its trace."""
    gpu, chance = SimulatedGPU(1 << 30), random.Random(0)
    gpu.allocator.log.history = history = MemoryHistory(None, entries, frozenset(), False)
    held = []
    while len(history.entries) < entries:
        if len(held) < 20 and chance.random() < 0.6:
            held.append(gpu.allocator.malloc(chance.randrange(1, 8 << 20)))
        elif held:
            gpu.allocator.free(held.pop(chance.randrange(len(held))))
    dump_snapshot(snapshot([gpu.allocator]), path)
    return path


def test_the_allocator_of_a_snapshot_is_shown_step_by_step(qtbot: QtBot, session: Session, tmp_path: Path) -> None:
    gpu = SimulatedGPU(1 << 30)
    gpu.allocator.log.history = MemoryHistory("all", 1000, frozenset(), False)
    kept = [gpu.allocator.malloc(size) for size in (600, 3 << 20)]
    gpu.allocator.free(kept[0])
    dump_snapshot(snapshot([gpu.allocator]), tmp_path / "job.pickle")
    assert session.open(str(tmp_path / "job.pickle"))
    qtbot.waitUntil(lambda: session.status == REPLAY, timeout=PATIENCE)
    recording = session.recording
    assert recording is not None and not recording.live and session.script.endswith("job.pickle")
    state = recording.state(recording.steps - 1)
    assert state.status == 0
    assert 3 << 20 in [block.size for block in state.allocator.blocks.values()]
    assert len(recording.lines()) == 6  # two segments, two blocks, a free requested and completed


def test_a_long_one_comes_bit_by_bit_and_is_quick_to_look_at(qtbot: QtBot, session: Session, tmp_path: Path) -> None:
    told: list[str] = []
    session.told.connect(told.append)
    assert session.open(str(job(tmp_path / "job.pickle", 20_000)))
    assert session.status == IMPORTING
    qtbot.waitUntil(lambda: session.status == REPLAY, timeout=PATIENCE)
    assert any("of 20,000 entries" in words for words in told) and told[-1] == ""
    recording = session.recording
    assert recording is not None and len(recording.lines()) == 20_000
    assert recording.read_curve(0), "the memory curve was not kept"
    state = recording.state(int(recording.lines()[12_345]))
    source = recording.sources[state.source]
    assert "entries 12001 to 12500" in source.path and state.line == 346
    steps, allocated, reserved = recording.allocator_curve(state.step)
    assert (allocated[-1], reserved[-1]) == tuple(
        state.allocator.count(f"{name}_bytes.current") for name in ("allocated", "reserved")
    )


def test_it_can_be_stopped_and_what_was_read_stays(qtbot: QtBot, session: Session, tmp_path: Path) -> None:
    assert session.open(str(job(tmp_path / "job.pickle", 20_000)))
    qtbot.waitUntil(lambda: session.recording is not None and session.recording.steps > 0, timeout=PATIENCE)
    session.stop()
    assert session.status == REPLAY and session.recording is not None
    recording = session.recording
    steps, _, _ = recording.allocator_curve()
    assert recording.steps > 0 and (not len(steps) or steps[-1] < recording.steps)
    assert recording.state(recording.steps - 1).step == recording.steps - 1


@pytest.mark.parametrize(
    ("content", "said"),
    [(pickle.dumps([1, 2])[:-3], "cut short"), (pickle.dumps({"segments": print}), "wants to run builtins.print")],
)
def test_a_bad_one_is_refused(qtbot: QtBot, session: Session, tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "bad.pickle").write_bytes(content)
    with qtbot.waitSignal(session.failed, timeout=PATIENCE) as heard:
        session.open(str(tmp_path / "bad.pickle"))
    assert said in heard.args[0] and "\n" not in heard.args[0]
    assert session.status == EMPTY and session.recording is None


def test_the_window_shows_the_allocator_and_steps_entry_by_entry(qtbot: QtBot, tmp_path: Path) -> None:
    window = MainWindow(remember=False)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    assert window.open(str(job(tmp_path / "job.pickle", 1200)))
    qtbot.waitUntil(lambda: window.session.status == REPLAY and window.settled, timeout=PATIENCE)
    panel = window.workbench.panels["allocator"]
    assert panel.isVisible() and panel.picture is not None and panel.picture.pools
    assert window.stepping.grain == "line"
    recording = window.session.recording
    assert recording is not None
    window.time.look(int(recording.lines()[700]))
    qtbot.waitUntil(lambda: window.settled, timeout=PATIENCE)
    assert "entries 501 to 1000" in window.workbench.panels["editor"].heading()[0]
    window.stepping.forward("over")
    assert window.time.view == int(recording.lines()[701])
    recording_path = recording.path
    saved = tmp_path / "kept.stride"
    window.session.save_as(str(saved))
    assert recording_path and saved.exists()
    window.workbench.show_panel("storage")
    assert window.open(str(saved)) and panel.isVisible()
    window.close()
