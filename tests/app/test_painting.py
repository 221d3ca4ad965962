"""What is painted: bold words of our own font, and a picture that fails keeps to itself."""

from __future__ import annotations

import contextlib

from PySide6.QtGui import QPainter, QTextCursor, QTextDocument
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from stridescope.app import theme as themes
from stridescope.app.items.canvas import Canvas
from stridescope.app.items.sketch import Sketch


def test_bold_words_are_of_a_weight_that_our_font_has(qapp: QApplication) -> None:
    document = QTextDocument()
    document.setHtml(themes.rich("<b>relu</b> joins the graph"))
    cursor = QTextCursor(document)
    cursor.setPosition(1)
    assert cursor.charFormat().fontWeight() == themes.ui_font(bold=True).weight()
    cursor.movePosition(QTextCursor.MoveOperation.End)
    assert cursor.charFormat().fontWeight() == themes.ui_font().weight()


def test_a_canvas_that_fails_to_paint_leaves_the_others_alone(qtbot: QtBot, qapp: QApplication) -> None:
    opened: list[QPainter] = []

    class Broken(Canvas):
        def sketch(self, sketch: Sketch) -> None:
            opened.append(sketch.painter)
            raise ValueError("no picture")

    broken = Broken()
    qtbot.addWidget(broken)
    with contextlib.suppress(ValueError), qtbot.captureExceptions():  # PySide6 raises it here from 6.12 on
        broken.grab()
    assert not opened[0].isActive()  # Qt paints no other panel while one is open
