"""The window at the edges of a session: before its first line, in another theme, while the next one begins."""

from __future__ import annotations

from collections.abc import Callable

from debugger import PATIENCE, Key, panel, press, reach
from PySide6.QtGui import QTextCursor
from pytestqt.qtbot import QtBot

from stridescope.app import theme as themes
from stridescope.app.main_window import MainWindow


def test_what_the_console_said_stays_readable_in_the_next_theme(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run()
    console = panel(window, "console")
    console.line.setText("1 + 1")  # type: ignore[attr-defined]
    qtbot.keyClick(console.line, Key.Key_Return)  # type: ignore[attr-defined]
    view = console.view  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: view.toPlainText() == ">>> 1 + 1\n2", timeout=PATIENCE)
    for _ in themes.THEMES:
        window.toggle_theme()
        cursor = QTextCursor(view.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        assert cursor.charFormat().foreground().color() == themes.active().color("text")
        assert view.toPlainText() == ">>> 1 + 1\n2"


def test_before_the_first_line_the_beginning_of_the_script_is_seen(
    qtbot: QtBot, run: Callable[..., MainWindow]
) -> None:
    window = run("import torch\n" + "a = torch.ones(2)\n" * 200)
    press(qtbot, window, Key.Key_F5)
    bar = window.workbench.panels["editor"].verticalScrollBar()
    assert bar.value() > 0
    press(qtbot, window, Key.Key_Home)
    assert bar.value() == 0


def test_rows_of_a_recording_that_was_let_go_are_empty(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run("import torch\nfor n in range(3000):\n    a = torch.ones(2) + n\n")
    events = panel(window, "events")
    press(qtbot, window, Key.Key_F5)
    rows = events.model()  # type: ignore[attr-defined]
    assert rows.rowCount() > 10_000 and rows.index(5, 1).data()
    assert window.open(window.session.script)
    seen = {rows.index(row, 1).data() for row in range(0, rows.rowCount(), 100)}
    assert None in seen
    reach(qtbot, window)
    qtbot.waitUntil(lambda: rows.rowCount() < 100, timeout=PATIENCE)
    assert rows.index(0, 1).data() == "SourceSeen"


def test_where_the_script_waits_is_said_until_it_goes_on(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run()
    press(qtbot, window, Key.Key_F10)
    press(qtbot, window, Key.Key_Home)
    press(qtbot, window, Key.Key_F5)
    assert window.time.live and window.banner.isVisible()
    press(qtbot, window, Key.Key_F5)
    assert window.session.status == "ended" and not window.banner.isVisible()
