"""A line of words under the toolbar: what went wrong, or what the worker says."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from stridescope.app import theme as themes
from stridescope.app.items.sketch import Sketch
from stridescope.app.text import tr
from stridescope.app.theme import code_html, ui_font

MOST_LINES, MOST_SHOWN, MOST_TOLD = 6, 600, 4000  # lines and letters; more would take the panels' room


class Banner(QWidget):
    """Stays until it is clicked away or replaced."""

    closed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._failure = False
        self._label = QLabel()
        self._label.setFont(ui_font(13))
        self._label.setWordWrap(True)
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(18, 8, 44, 8)
        layout.addWidget(self._label)
        self.setToolTip(tr("click the cross to close"))
        self.hide()

    @property
    def words(self) -> str:
        """What it says now, "" while it is hidden."""
        return self._label.text() if not self.isHidden() else ""

    def say(self, text: str, *, failure: bool) -> None:
        """Show ``text``; an empty one takes away what was said, unless that was a failure."""
        if not text.strip():
            self.setVisible(self._failure and not self.isHidden())
            return
        self._failure = failure
        shown = _cut(text.strip())
        self._label.setText(shown)
        self._label.setToolTip("" if shown == text.strip() else code_html(text.strip()[:MOST_TOLD]))
        self._label.setStyleSheet(f"color: {themes.active().text}")
        self.setAccessibleName(text)
        self.show()
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            sketch = Sketch(painter, themes.active())
            color = "err" if self._failure else "now"
            painter.fillRect(self.rect(), sketch.theme.mix(color, 0.16))
            painter.fillRect(QRectF(0, 0, 4, self.height()), sketch.color(color))
            x, y = self.width() - 28.0, self.height() / 2
            for dy in (-5, 5):
                sketch.line(x, y - dy, x + 10, y + dy, "text", 1.6)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.position().x() > self.width() - 44:
            self.hide()
            self.closed.emit()


def _cut(text: str) -> str:
    """Return as much of a text as there is room for, with a "…" where something is left out."""
    lines = text.splitlines()
    shown = "\n".join(lines[:MOST_LINES])[:MOST_SHOWN]
    return text if shown == text else shown.rstrip() + " …"
