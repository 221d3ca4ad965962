"""How much room the script has beside the tensors, until a person decides."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from debugger import PATIENCE
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QSplitter
from pytestqt.qtbot import QtBot

from stridescope.app.main_window import MainWindow
from stridescope.app.workbench import LEFT_ROWS, MOST_SCRIPT

SHORT = "import torch\na = torch.ones(2)\n"
LONG = "import torch\n" + "a = torch.ones(2)\n" * 60


def rows_of(window: MainWindow) -> QSplitter:
    column = window.workbench.stacks["script"].parentWidget()
    assert isinstance(column, QSplitter)
    return column


def share(window: MainWindow) -> float:
    script, state = rows_of(window).sizes()
    return script / (script + state)


@pytest.mark.parametrize(
    ("script", "wanted"), [(SHORT, LEFT_ROWS[0] / sum(LEFT_ROWS)), (LONG, MOST_SCRIPT)], ids=["short", "long"]
)
def test_a_long_script_has_more_of_its_column(run: Callable[..., MainWindow], script: str, wanted: float) -> None:
    assert share(run(script)) == pytest.approx(wanted, abs=0.02)


def test_what_a_person_has_chosen_stays(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run(LONG)
    assert not any(window.workbench.save_layout())
    handle = rows_of(window).handle(1)
    middle = QPoint(handle.width() // 2, 0)
    qtbot.mousePress(handle, Qt.MouseButton.LeftButton, pos=middle)
    qtbot.mouseMove(handle, middle - QPoint(0, 90))
    qtbot.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=middle - QPoint(0, 90))
    qtbot.waitUntil(lambda: share(window) < MOST_SCRIPT - 0.05, timeout=PATIENCE)
    chosen = share(window)
    window = run(LONG + "b = a\n")
    assert share(window) == pytest.approx(chosen, abs=0.02)
    moved = window.workbench.save_layout()
    assert moved[0] and not any(moved[1:])
