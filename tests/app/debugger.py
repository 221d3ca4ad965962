"""Driving the debugger in a window as a person would: keys, the caret, panels; every key waits for its stop."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from stridescope.app.main_window import MainWindow
from stridescope.engine import events as ev

Key, Modifier = Qt.Key, Qt.KeyboardModifier
NONE, SHIFT, CTRL, ALT = Modifier.NoModifier, Modifier.ShiftModifier, Modifier.ControlModifier, Modifier.AltModifier
PATIENCE = 30_000  # milliseconds

SCRIPT = """import torch


def twice(t):
    return t * 2


w = torch.arange(6.).reshape(2, 3).requires_grad_()
net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
many = [torch.zeros(2) for _ in range(300)]
table = {"one": 1, "tensor": w}
for step in range(4):
    y = twice(w).t().contiguous()
    y.sum().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
print("end")
"""


def reach(qtbot: QtBot, window: MainWindow, status: str = "waiting") -> None:
    qtbot.waitUntil(lambda: window.session.status == status and window.settled, timeout=PATIENCE)


def press(qtbot: QtBot, window: MainWindow, key: Qt.Key, modifier: Qt.KeyboardModifier = NONE) -> int:
    """Press a key, let the script come to its next stop, and return the step that we look at then."""
    qtbot.keyClick(window, key, modifier)
    qtbot.waitUntil(lambda: window.session.status in ("waiting", "ended"), timeout=PATIENCE)
    qtbot.waitUntil(lambda: window.settled, timeout=PATIENCE)
    window.refresh()
    return window.time.view


def kind_at(window: MainWindow, step: int) -> type[ev.Event]:
    assert window.session.recording is not None
    return type(window.session.recording.event(step))


def line_of(window: MainWindow) -> int:
    return int(window.workbench.panels["editor"].picture.line)


def caret(window: MainWindow, line: int) -> None:
    editor = window.workbench.panels["editor"]
    cursor = editor.textCursor()
    cursor.setPosition(editor.document().findBlockByNumber(line - 1).position())
    editor.setTextCursor(cursor)


def run_to(qtbot: QtBot, window: MainWindow, line: int) -> int:
    caret(window, line)
    return press(qtbot, window, Key.Key_F10, CTRL)


def panel(window: MainWindow, name: str) -> QWidget:
    window.workbench.show_panel(name)
    shown: QWidget = window.workbench.panels[name]
    return shown
