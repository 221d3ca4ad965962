"""The header of panels in one place: a tool stands beside the titles, or under them where they leave no room."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from stridescope.app.items.stack import HEAD_HEIGHT, Stack


@pytest.mark.parametrize(("width", "below"), [(900, False), (260, True)])
def test_a_tool_never_covers_titles(qtbot: QtBot, width: int, below: bool) -> None:
    titles = ["Tensors", "Variables", "Watches", "Calls", "Breakpoints"]
    stack, tool = Stack(titles, [QLabel(title) for title in titles]), QLineEdit()
    tool.setMaximumWidth(84)
    stack.add_tool(0, tool)
    qtbot.addWidget(stack)
    stack.show_page(1)
    stack.resize(width, 300)
    with qtbot.waitExposed(stack):
        stack.show()
    stack.show_page(0)
    qtbot.waitUntil(lambda: (tool.mapTo(stack, tool.rect().topLeft()).y() >= HEAD_HEIGHT - 4) is below, timeout=3000)
    assert tool.mapTo(stack, tool.rect().bottomRight()).y() <= stack.head.height()
