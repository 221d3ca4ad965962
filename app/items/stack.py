"""Several panels in one place: the header names all, the shown one in bold; a click on another shows that."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from stridescope.app import theme as themes
from stridescope.app.items.icons import draw_icon
from stridescope.app.items.sketch import Sketch, text_width
from stridescope.app.text import tr

HEAD_HEIGHT, TOOL_HEIGHT = 32, 28
BASELINE = HEAD_HEIGHT / 2 + 4
LEAST_FACTS = 40  # pixels: fewer hold no word


class Stack(QWidget):
    """``shown`` tells which page is in front, ``grown`` that the header's ⤢ was pressed."""

    shown = Signal(int)
    grown = Signal()

    def __init__(self, titles: Sequence[str], pages: Sequence[QWidget]) -> None:
        super().__init__()
        self.head = _Head(list(titles))
        self.pages = QStackedWidget()
        for page in pages:
            self.pages.addWidget(page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.head)
        layout.addWidget(self.pages)
        self.head.chosen.connect(self._choose)
        self.head.grown.connect(self.grown)

    def show_page(self, place: int) -> None:
        """Bring a page to the front."""
        if place != self.pages.currentIndex():
            self.pages.setCurrentIndex(place)
            self.head.choose(place)
            self.shown.emit(place)

    def _choose(self, place: int) -> None:
        """Show the page that was asked for; one in which people type takes the keyboard."""
        self.show_page(place)
        page = self.pages.currentWidget()
        if page is not None and (line := page.focusProxy()) is not None and not self.head.hasFocus():
            line.setFocus()

    def set_heading(self, title: str, facts: str, right: str) -> None:
        """Show the front page's title, its facts, and facts at the right."""
        self.head.set_heading(title, facts, right)

    def add_tool(self, place: int, tool: QWidget) -> None:
        """Put a widget at the right of the header while a page is in front."""
        self.head.add_tool(place, tool)


class _Head(QWidget):
    """The header: all titles, that of the front page in bold; keyboard: Left and Right."""

    chosen = Signal(int)
    grown = Signal()

    def __init__(self, titles: list[str]) -> None:
        super().__init__()
        self._titles, self._current = titles, 0
        self._title, self._facts, self._right = titles[0], "", ""
        self._places: list[tuple[QRectF, int]] = []
        self._tools: dict[int, QWidget] = {}
        self._hovered = -1
        self.growable = True
        self.setFixedHeight(HEAD_HEIGHT)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus if len(titles) > 1 else Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(", ".join(titles))
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 12, 3)
        self._row.addStretch(1)

    def choose(self, place: int) -> None:
        """Let ``place`` be the front page."""
        self._current = place
        self._title, self._facts, self._right = self._titles[place], "", ""
        for page, tool in self._tools.items():
            tool.setVisible(page == place)
        self._make_room()
        self.update()

    def _make_room(self) -> None:
        """Give the tool a row of its own where the titles leave none beside them."""
        tool = self._tools.get(self._current)
        beside = tool is None or self._width_of_titles() + tool.width() + 12 <= self.width()
        self._row.setContentsMargins(0, 0 if beside else HEAD_HEIGHT - 4, 12, 3)
        self.setFixedHeight(HEAD_HEIGHT if beside else HEAD_HEIGHT + TOOL_HEIGHT)

    def _width_of_titles(self) -> float:
        return 34 + text_width(self._title, bold=True) + self._width_of_others()

    def _width_of_others(self) -> float:
        others = sum(text_width("·") + text_width(title) + 16 for title in self._titles)
        return others - text_width("·") - text_width(self._titles[self._current]) - 16

    def _tool_width(self) -> float:
        tool = self._tools.get(self._current)
        return tool.width() + 12 if tool is not None and self.height() == HEAD_HEIGHT else 0

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def set_heading(self, title: str, facts: str, right: str) -> None:
        if (title, facts, right) != (self._title, self._facts, self._right):
            self._title, self._facts, self._right = title, facts, right
            self.update()

    def add_tool(self, place: int, tool: QWidget) -> None:
        self._tools[place] = tool
        self._row.addWidget(tool, 0, Qt.AlignmentFlag.AlignBottom)
        tool.setVisible(place == self._current)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            sketch = Sketch(painter, themes.active())
            painter.fillRect(self.rect(), sketch.color("panel"))
            painter.fillRect(0, self.height() - 1, self.width(), 1, sketch.color("line"))
            self._places.clear()
            end = self._draw_titles(sketch)
            self._draw_right(sketch, end)

    def _draw_titles(self, sketch: Sketch) -> float:
        """Draw the titles there is room for, the front page's among them; a "…" leads to the next of the others."""
        x, first = 12.0, self._first_title()
        for place in range(max(0, first - 1), len(self._titles)):
            if place > first:
                x += sketch.text(x, BASELINE, "·", "faint") + 8
            if place == self._current:
                x = self._draw_current(sketch, x)
                continue
            more = 0.0 if place + 1 == len(self._titles) else text_width("·…") + 16
            cut = place < first or x + text_width(self._titles[place]) + more > self._room_for_titles()
            x = self._draw_other(sketch, x, place, "…" if cut else self._titles[place])
            if cut and place > first:
                break
        return x

    def _draw_other(self, sketch: Sketch, x: float, place: int, words: str) -> float:
        width = sketch.text(x, BASELINE, words, "text" if place == self._hovered else "dim")
        self._places.append((QRectF(x - 4, 0, width + 8, HEAD_HEIGHT), place))
        return x + width + 8

    def _first_title(self) -> int:
        """Return the first title that is drawn: with all from there on, the front page's has room."""
        room = self._room_for_titles() - 12 - text_width(self._title, bold=True)
        first = self._current
        while first and (room := room - text_width(self._titles[first - 1]) - text_width("·") - 16) > 0:
            first -= 1
        return first

    def _room_for_titles(self) -> float:
        """Return where titles end: before the tool, or the arrows."""
        return self.width() - 12 - (self._tool_width() or (24 if self.growable else 0))

    def _draw_current(self, sketch: Sketch, x: float) -> float:
        """Draw the front page's title and its facts; return where the next title stands."""
        width = sketch.text(x, BASELINE, self._title, bold=True)
        if self.hasFocus():
            sketch.painter.fillRect(round(x), self.height() - 2, round(width), 2, sketch.color("now"))
        x, room = x + width + 10, self._room_for_titles() - self._width_of_titles()
        if self._facts and room >= LEAST_FACTS:
            x += sketch.text(x, BASELINE, self._facts, "dim", room=room) + 10
        return x

    def _draw_right(self, sketch: Sketch, end: float) -> None:
        right = self.width() - 12.0
        if self.growable and not self._tools.get(self._current):
            rect = QRectF(right - 13, self.height() / 2 - 7, 13, 13)
            draw_icon(sketch.painter, "expand", rect, sketch.color("text" if self._hovered == -2 else "dim"))
            self._places.append((rect.adjusted(-6, -8, 6, 8), -2))
            right -= 24
        if self._right:
            sketch.text(right, self.height() / 2 + 4, self._right, "dim", anchor="right", room=max(20.0, right - end))

    def _place_at(self, point: QPointF) -> int:
        return next((place for rect, place in self._places if rect.contains(point)), -1)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hovered = self._place_at(event.position())
        self.setToolTip(tr("fill the window") if self._hovered == -2 else "")
        self.update()

    def leaveEvent(self, _event: QEvent) -> None:
        self._hovered = -1
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._place_at(event.position())
        if place == -2:
            self.grown.emit()
        elif place >= 0:
            self.chosen.emit(place)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.hasFocus():  # a key that a tool in the header left over
            super().keyPressEvent(event)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down):
            self.chosen.emit((self._current + 1) % len(self._titles))
        elif event.key() == Qt.Key.Key_Up:
            self.chosen.emit((self._current - 1) % len(self._titles))
        else:
            super().keyPressEvent(event)
