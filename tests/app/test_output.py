"""The output panel: forward it appends, back it takes away, and a flood does not drown it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from stridescope.app.moment import Moment
from stridescope.app.panels.output import MOST_CHARACTERS, SINGLE, OutputPanel
from stridescope.app.selection import NOTHING
from stridescope.engine import events as ev
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.writer import Writer

Print = Callable[[list[tuple[int, str]]], Recording]


@pytest.fixture
def printed(tmp_path: Path) -> Print:
    """Make a recording of a script that prints these (stream, text)."""

    def made(outputs: list[tuple[int, str]]) -> Recording:
        path = tmp_path / "printed.stride"
        writer, journal = Writer(path, {}), ev.Journal()
        writer.attach(journal)
        assert journal.emit is not None
        for stream, text in outputs:
            journal.emit(ev.OutputWritten(stream, text).pack())
        writer.close(0)
        return Recording.open(path)

    return made


@pytest.fixture
def panel(qtbot: QtBot) -> OutputPanel:
    made = OutputPanel()
    qtbot.addWidget(made)
    return made


def show(panel: OutputPanel, recording: Recording, step: int) -> str:
    panel.present(Moment(recording, recording.state(step), recording.steps - 1, NOTHING))
    return panel.view.toPlainText()


def test_forward_and_back(panel: OutputPanel, printed: Print) -> None:
    texts = ["a\n", "b", " — ünï 🎈\n", "", "c\r\nd\n"]
    recording = printed([(1 + i % 2, text) for i, text in enumerate(texts)])
    shown = ["".join(texts[: i + 1]).replace("\r\n", "\n") for i in range(len(texts))]
    assert [show(panel, recording, i) for i in range(5)] == shown
    assert [show(panel, recording, i) for i in (3, 1, 4, 0)] == [shown[i] for i in (3, 1, 4, 0)]
    assert show(panel, recording, -1) == ""


def test_far_jumps(panel: OutputPanel, printed: Print) -> None:
    recording = printed([(1, f"{i}\n") for i in range(4 * SINGLE)])
    for step in (4 * SINGLE - 1, 10, 3 * SINGLE, 3 * SINGLE - SINGLE // 2, 3 * SINGLE - SINGLE // 2 - 1, 0):
        assert show(panel, recording, step) == "".join(f"{i}\n" for i in range(step + 1))


def test_a_flood_keeps_the_newest(panel: OutputPanel, printed: Print) -> None:
    recording = printed([(1, "x" * 999 + "\n") for _ in range(2 * SINGLE)])
    text = show(panel, recording, recording.steps - 1)
    assert text.startswith("… older output is left out") and text.endswith("x\n")
    assert len(text) < MOST_CHARACTERS + 1000 * SINGLE
