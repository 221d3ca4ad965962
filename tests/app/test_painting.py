"""What is painted and said: bold words of our own font, tips as they are, a picture that fails keeps to itself."""

from __future__ import annotations

import contextlib

from PySide6.QtCore import QEvent, QPoint, QRectF
from PySide6.QtGui import QHelpEvent, QPainter, QTextCursor, QTextDocument
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from stridescope.app import theme as themes
from stridescope.app.items.canvas import Canvas
from stridescope.app.items.sketch import Sketch
from stridescope.app.selection import NOTHING


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


def test_a_tip_says_its_words_as_they_are(qtbot: QtBot, qapp: QApplication) -> None:
    words = "table['<b>'], a < b\n  and the next line"

    class Named(Canvas):
        def sketch(self, sketch: Sketch) -> None:
            self.spot(QRectF(0, 0, 50, 50), NOTHING, words)

    named = Named()
    qtbot.addWidget(named)
    named.resize(50, 50)
    named.grab()
    place = QPoint(20, 20)
    QApplication.sendEvent(named, QHelpEvent(QEvent.Type.ToolTip, place, named.mapToGlobal(place)))
    shown = QTextDocument()
    shown.setHtml(QToolTip.text())
    assert shown.toPlainText() == words
    QToolTip.hideText()
