"""The first page: open something, or take a lesson."""

from __future__ import annotations

import os

from PySide6.QtCore import QRectF, QSettings, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QGridLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from stridescope.app import theme as themes
from stridescope.app.items.sketch import Sketch
from stridescope.app.lessons import LESSONS
from stridescope.app.text import tr
from stridescope.app.theme import ui_font

RECENT_KEPT = 6


class Welcome(QWidget):
    """``chosen`` gives the path of a lesson or a recent file, ``asked`` that a file dialog is wanted."""

    chosen = Signal(str)
    asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Welcome"))
        self._title = QLabel("Stridescope")
        self._title.setFont(ui_font(30, bold=True))
        self._help = QLabel(tr("Open a PyTorch script, step through it, and see every byte, node and block move."))
        self._help.setFont(ui_font(14))
        self._open = QPushButton(tr("Open a script or a recording…"))
        self._open.setFont(ui_font(13, bold=True))
        self._open.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._open.clicked.connect(self.asked)
        self._lessons, self._recent = _Cards(tr("Lessons")), _Cards(tr("Recent"))
        self._lessons.show_cards([(lesson.path, tr(lesson.title), tr(lesson.help)) for lesson in LESSONS])
        for cards in (self._lessons, self._recent):
            cards.chosen.connect(self.chosen)
        self._arrange()
        self.refresh()
        self.restyle()

    def _arrange(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(90, 70, 90, 40)
        column.setSpacing(14)
        for widget in (self._title, self._help, self._open, self._lessons, self._recent):
            column.addWidget(widget)
        column.addStretch(1)

    def refresh(self) -> None:
        """Show the files that were opened last and still exist."""
        paths = [path for path in recent_files() if os.path.exists(path)]
        self._recent.show_cards([(path, os.path.basename(path), os.path.dirname(path)) for path in paths])
        self._recent.setVisible(bool(paths))

    def restyle(self) -> None:
        """Take the colours of the active theme."""
        theme = themes.active()
        self._help.setStyleSheet(f"color: {theme.dim}")
        self._open.setStyleSheet(
            f"QPushButton {{ background: {theme.now}; color: {theme.on_now}; border: 2px solid {theme.now};"
            f" border-radius: 7px; padding: 8px 16px; }} QPushButton:focus {{ border-color: {theme.text}; }}"
        )
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), themes.active().color("panel"))


class _Cards(QWidget):
    """A title and cards, three a row."""

    chosen = Signal(str)

    def __init__(self, title: str) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 18, 0, 0)
        label = QLabel(title)
        label.setFont(ui_font(13, bold=True))
        column.addWidget(label)
        self._grid = QGridLayout()
        self._grid.setSpacing(12)
        column.addLayout(self._grid)
        self._cards: list[_Card] = []

    def show_cards(self, entries: list[tuple[str, str, str]]) -> None:
        """Show cards of (path, title, help)."""
        for card in self._cards:
            card.deleteLater()
        self._cards = [_Card(*entry) for entry in entries]
        for place, card in enumerate(self._cards):
            card.chosen.connect(self.chosen)
            self._grid.addWidget(card, place // 3, place % 3)
        for column in range(3):
            self._grid.setColumnStretch(column, 1)


class _Card(QAbstractButton):
    chosen = Signal(str)

    def __init__(self, path: str, title: str, help_: str) -> None:
        super().__init__()
        self._title, self._help = title, help_
        self.setAccessibleName(title)
        self.setAccessibleDescription(help_)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFixedHeight(72)
        self.clicked.connect(lambda: self.chosen.emit(path))

    def sizeHint(self) -> QSize:
        return QSize(300, 72)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            sketch = Sketch(painter, themes.active())
            hot = self.underMouse() or self.hasFocus()
            sketch.box(
                QRectF(1, 1, self.width() - 2, self.height() - 2),
                "panel2",
                "now" if hot else "line",
                radius=9,
                width=1.4,
            )
            sketch.text(18, 31, self._title, size=14, bold=True, room=self.width() - 36)
            sketch.text(18, 53, self._help, "dim", room=self.width() - 36)


def recent_files() -> list[str]:
    """Return the files that were opened last, the newest first."""
    found = QSettings().value("recent", [])
    return [str(path) for path in found] if isinstance(found, list) else [str(found)]


def remember_file(path: str) -> None:
    """Put a file at the head of the recent ones."""
    kept = [path, *(p for p in recent_files() if p != path)]
    QSettings().setValue("recent", kept[:RECENT_KEPT])
