"""A million cells, fifty thousand nodes: pictures stay quick. The bounds are ten times what an idle machine needs."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from stridescope.app import main_window, motion
from stridescope.app.main_window import MainWindow
from stridescope.app.moment import Moment
from stridescope.app.panels.graph import GraphPanel
from stridescope.app.panels.storage import StoragePanel
from stridescope.app.panels.variables_model import variables
from stridescope.app.selection import Selection, linked
from stridescope.engine import events as ev
from stridescope.engine.recording.model import NodeState, State, StorageState
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.writer import Writer

SIDE, NODES, EVENTS = 1000, 50_000, 40_000


class Kept:
    """Bytes as a recording keeps them."""

    def __init__(self, values: np.ndarray) -> None:
        self._bytes = values.tobytes()

    def read(self) -> bytes:
        return self._bytes


@pytest.fixture
def state(strides: Recording) -> State:
    return dataclasses.replace(strides.state(int(strides.lines()[-2])))


def cpu(work: Callable[[], object]) -> float:
    """Return the best of three CPU times, in seconds."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def test_a_million_cells(qtbot: QtBot, strides: Recording, state: State) -> None:
    layouts = {1: ((SIDE, SIDE), (SIDE, 1), 0), 2: ((SIDE, SIDE), (1, SIDE), 0), 3: ((500, 333), (2 * SIDE, 3), 5)}
    like = next(iter(state.tensors.values()))
    state.tensors = {
        number: msgspec.structs.replace(
            like, id=number, storage=1, sizes=sizes, strides=steps, offset=offset, names=(f"t{number}",), base=0
        )
        for number, (sizes, steps, offset) in layouts.items()
    }
    values = np.random.default_rng(0).standard_normal(SIDE * SIDE).astype(np.float32)
    state.storages = {1: StorageState(1, values.nbytes, "cpu", 0, 0, 0, Kept(values))}  # type: ignore[arg-type]
    panel = StoragePanel()
    qtbot.addWidget(panel)
    panel.resize(1280, 800)
    for number in layouts:
        moment = Moment(strides, state, strides.steps - 1, linked(state, Selection(tensor=number)))
        panel.present(moment)
        assert cpu(lambda moment=moment: panel.present(moment)) < 0.1  # type: ignore[misc]
        assert cpu(panel.grab) < 0.25


def test_fifty_thousand_nodes(qtbot: QtBot, strides: Recording, state: State) -> None:
    dice = random.Random(1)
    edges = {n: tuple((dice.randrange(n - 12, n), 0) for _ in range(2)) if n > 12 else () for n in range(1, NODES + 1)}
    state.nodes = {n: NodeState(n, "AddBackward0", n, leading, 0, n, "add", 0, []) for n, leading in edges.items()}
    motion.allow(False)
    panel = GraphPanel()
    qtbot.addWidget(panel)
    panel.resize(1280, 800)
    moment = Moment(strides, state, strides.steps - 1, Selection(node=NODES))
    panel.present(moment)
    assert cpu(lambda: panel.present(moment)) < 0.25
    assert cpu(panel.grab) < 0.25
    panel.show_all()
    assert cpu(panel.grab) < 0.5


@pytest.fixture
def long(tmp_path: Path) -> Iterator[Path]:
    """A recording of EVENTS steps that is still written: it has no keyframes yet."""
    path = tmp_path / "long.stride"
    journal = ev.Journal()
    writer = Writer(path, {"script": "long.py"})
    writer.attach(journal, 1 << 16)
    assert journal.emit is not None
    journal.emit(ev.SourceSeen(1, "long.py").pack())
    journal.emit(ev.FrameEntered(1, 0, 1, "<module>", 1).pack())
    for number in range(1, EVENTS):
        journal.emit(ev.NameBound(1, f"n{number % 100}", 0, str(number)).pack())
    writer.flush()
    yield path
    writer.close(0)


def test_a_far_jump_is_read_piece_by_piece(long: Path) -> None:
    with Recording.open(long) as recording:
        steps = [recording.reached]
        while not recording.approach(recording.steps - 1, 0.001):
            steps.append(recording.reached)
        assert len(steps) > 2 and steps == sorted(steps)
        assert recording.state(recording.steps - 1).frames[0].names["n99"].text == str(EVENTS - 1)
        assert recording.approach(recording.steps - 2, 0.0)  # one back is near


def test_the_window_says_that_it_catches_up(
    qtbot: QtBot, window: MainWindow, long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main_window, "AT_ONCE", 0.001)  # a fast machine is there at the first look
    said = []
    assert window.open(str(long))
    qtbot.waitUntil(lambda: window.settled)
    qtbot.keyClick(window, Qt.Key.Key_End)

    def settled() -> bool:
        said.append(window.toolbar.step.accessibleDescription())
        return window.settled

    qtbot.waitUntil(settled, timeout=30_000)
    steps = f" / {EVENTS + 1}"
    on_the_way = [words for words in said if words.startswith("catching up step ") and words.endswith(steps)]
    assert on_the_way and f"step {EVENTS + 1}{steps}" not in on_the_way[0]
    assert window.toolbar.step.accessibleDescription() == f"replay step {EVENTS + 1}{steps}"


def test_of_a_deep_recursion_the_innermost_names_are_shown(strides: Recording, state: State) -> None:
    (outermost,) = state.frames
    depths = range(outermost.id + 1, outermost.id + 5000)
    deeper = [msgspec.structs.replace(outermost, id=id, parent=id - 1, function="down") for id in depths]
    state.frames, state.here = [outermost, *deeper], depths[-1]
    shown = variables(Moment(strides, state, state.step, Selection()))
    titles = [row.text for row in shown if not row.name]
    assert titles == ["down()"] * 100 + ["module"]
    assert [row.text for row in shown if row.name == "…"] == ["4899 more calls"]
