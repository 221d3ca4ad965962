"""A memory snapshot of PyTorch opens in the window as a recording; a bad one is refused in one line."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from stridescope.app.session import EMPTY, REPLAY, Session
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


def test_the_allocator_of_a_snapshot_is_shown_step_by_step(qtbot: QtBot, session: Session, tmp_path: Path) -> None:
    gpu = SimulatedGPU(1 << 30)
    gpu.allocator.log.history = MemoryHistory("all", 1000, frozenset(), False)
    kept = [gpu.allocator.malloc(size) for size in (600, 3 << 20)]
    gpu.allocator.free(kept[0])
    dump_snapshot(snapshot([gpu.allocator]), tmp_path / "job.pickle")
    assert session.open(str(tmp_path / "job.pickle"))
    qtbot.waitUntil(lambda: session.recording is not None and not session.recording.live, timeout=PATIENCE)
    recording = session.recording
    assert recording is not None and session.status == REPLAY and session.script.endswith("job.pickle")
    qtbot.waitUntil(
        lambda: recording.refresh() > 0 and recording.state(recording.steps - 1).status == 0, timeout=PATIENCE
    )
    sizes = [block.size for block in recording.state(recording.steps - 1).allocator.blocks.values()]
    assert 3 << 20 in sizes
    assert len(recording.lines()) == 6  # two segments, two blocks, a free requested and completed


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
