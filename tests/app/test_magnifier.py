"""The panels shown larger, for a projector: mouse and keys reach them as before, and they come back as they were."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from debugger import PATIENCE, press
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QGraphicsView, QWidget
from pytestqt.qtbot import QtBot

from stridescope.app.items.magnifier import FACTORS
from stridescope.app.main_window import PRESENTED, MainWindow

Key, Modifier = Qt.Key, Qt.KeyboardModifier
CTRL = Modifier.ControlModifier


def larger(qtbot: QtBot, window: MainWindow, times: int) -> QGraphicsView:
    for _ in range(times):
        qtbot.keyClick(window, Key.Key_Equal, CTRL)
    return window.magnifier.findChildren(QGraphicsView)[0]


def click(qtbot: QtBot, lens: QGraphicsView, bench: QWidget, widget: QWidget, place: QPoint) -> None:
    """Click where a person sees ``place`` of a magnified widget."""
    seen = lens.mapFromScene(widget.mapTo(bench, place))
    qtbot.mouseClick(lens.viewport(), Qt.MouseButton.LeftButton, pos=seen)


def test_mouse_and_keys_reach_what_is_magnified(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run()
    own = window.workbench.size()
    lens = larger(qtbot, window, 2)
    assert window.magnifier.factor == 1.25
    qtbot.waitUntil(lambda: window.workbench.width() < own.width() * 0.85, timeout=PATIENCE)
    head = [press(qtbot, window, Key.Key_F10) for _ in range(4)][-1]
    timeline = window.workbench.panels["timeline"]
    click(qtbot, lens, window.workbench, timeline, QPoint(timeline.width() // 3, timeline.height() // 2))
    qtbot.waitUntil(lambda: window.time.view < head, timeout=PATIENCE)
    qtbot.keyClick(window, Key.Key_0, CTRL)
    assert window.magnifier.factor == 1
    qtbot.waitUntil(lambda: window.workbench.size() == own and window.workbench.isVisible(), timeout=PATIENCE)


def test_what_is_typed_stays_where_it_was(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run("x = 1\n")
    window.workbench.show_panel("console")
    line = window.workbench.panels["console"].focusProxy()
    line.setFocus()
    qtbot.keyClicks(line, "x +")
    larger(qtbot, window, 1)
    qtbot.keyClicks(line, " 1")
    qtbot.keyClick(window, Key.Key_0, CTRL)
    qtbot.waitUntil(lambda: QApplication.focusWidget() is line, timeout=PATIENCE)
    assert line.text() == "x + 1"


def test_no_size_is_larger_than_there_is_room_for(run: Callable[..., MainWindow]) -> None:
    window = run("x = 1\n")
    window.resize(1280, 800)
    for _ in range(2 * len(FACTORS)):
        window.zoom(1)
    least = window.workbench.minimumSizeHint()
    assert window.magnifier.factor > 1
    assert window.magnifier.width() / window.magnifier.factor >= least.width()
    for _ in range(2 * len(FACTORS)):
        window.zoom(-1)
    assert window.magnifier.factor == FACTORS[0]


@pytest.mark.parametrize("before", [1.0, 1.5])
def test_presenting_shows_the_panels_larger(qtbot: QtBot, run: Callable[..., MainWindow], before: float) -> None:
    window = run("x = 1\n")
    window.magnifier.magnify(before)
    qtbot.keyClick(window, Key.Key_P)
    qtbot.waitUntil(lambda: window.isFullScreen() and window.toolbar.isHidden(), timeout=PATIENCE)
    assert window.magnifier.factor == max(before, PRESENTED)
    qtbot.keyClick(window, Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.isFullScreen() and window.toolbar.isVisible(), timeout=PATIENCE)
    assert window.magnifier.factor == before


def test_a_theme_reaches_what_is_magnified(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run("x = 1\n")
    larger(qtbot, window, 2)
    colors = []
    for name in ("dark", "light"):
        window.set_theme(name)
        picture = window.workbench.panels["editor"].grab().toImage()
        colors.append(picture.pixelColor(picture.width() // 2, picture.height() - 20).name())
    assert colors[0] != colors[1]
