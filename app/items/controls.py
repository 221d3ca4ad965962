"""The controls of the toolbar: buttons that show their key, a choice of grains, chips with facts."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QWidget

from stridescope.app import theme as themes
from stridescope.app.items.icons import draw_icon
from stridescope.app.items.sketch import Sketch, text_width

HEIGHT = 30


class ActionButton(QAbstractButton):
    """A button for one action: icon, words, key. The hot one wears the accent."""

    def __init__(self, action: QAction, icon: str, words: str, key: str, *, hot: bool = False) -> None:
        super().__init__()
        self._action, self._icon, self._words, self._key, self._hot = action, icon, words, key, hot
        self.setFixedHeight(HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(action.text())
        self.setToolTip(action.toolTip())
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.clicked.connect(action.trigger)
        action.changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        self.setEnabled(self._action.isEnabled())
        self.update()

    def compact(self, small: bool) -> None:
        """Leave the key out where room is short."""
        if small != self._small:
            self._small = small
            self.updateGeometry()
            self.update()

    _small = False

    def sizeHint(self) -> QSize:
        width = 9.0 + (14 if self._icon else 0)
        if self._words:
            width += text_width(self._words, size=13, bold=self._hot) + (6 if self._icon else 0)
        if self._key and not self._small:
            width += text_width(self._key, size=11, mono=True) + 6
        return QSize(max(HEIGHT, round(width + 9)), HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            sketch = Sketch(painter, themes.active())
            rect = QRectF(0.5, 0.5, self.width() - 1, self.height() - 1)
            sketch.painter.setOpacity(1.0 if self.isEnabled() else 0.4)
            hot = self._hot and self.isEnabled()
            color = "on_now" if hot else "text"
            fill = "now" if hot else "line" if self.isDown() or self.underMouse() and self.isEnabled() else "panel2"
            sketch.box(rect, fill, None if hot else "line", radius=6)
            if self.hasFocus():
                sketch.box(rect.adjusted(2, 2, -2, -2), None, "on_now" if hot else "now", radius=4)
            self._draw_words(sketch, color)

    def _draw_words(self, sketch: Sketch, color: str) -> None:
        x = 9.0 if self._words else (self.width() - 14) / 2
        if self._icon:
            draw_icon(sketch.painter, self._icon, QRectF(x, self.height() / 2 - 7, 14, 14), sketch.color(color))
            x += 20
        if self._words:
            x += sketch.text(x, self.height() / 2 + 5, self._words, color, size=13, bold=self._hot) + 6
        if self._key and not self._small:
            quiet = sketch.theme.mix(color, 0.75, "now") if color == "on_now" else "faint"
            sketch.text(x, self.height() / 2 + 4, self._key, quiet, size=11, mono=True)

    def event(self, event: QEvent) -> bool:
        """Space presses the focused button, though it plays elsewhere."""
        if (
            event.type() is QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Space
        ):
            event.accept()
            return True
        return super().event(event)


class Choice(QWidget):
    """One of several checkable actions, as connected segments."""

    def __init__(self, actions: Sequence[QAction], words: Sequence[str]) -> None:
        super().__init__()
        group = QActionGroup(self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for place, (action, label) in enumerate(zip(actions, words, strict=True)):
            group.addAction(action)
            layout.addWidget(_Segment(action, label, first=place == 0, last=place == len(words) - 1))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)


class _Segment(QAbstractButton):
    def __init__(self, action: QAction, words: str, *, first: bool, last: bool) -> None:
        super().__init__()
        self._action, self._words, self._ends = action, words, (first, last)
        self.setCheckable(True)
        self.setAccessibleName(action.text())
        self.setToolTip(action.toolTip())
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clicked.connect(action.trigger)
        action.changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        self.setChecked(self._action.isChecked())
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(text_width(self._words, size=13, bold=True)) + 22, HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            sketch = Sketch(painter, themes.active())
            first, last = self._ends
            rect = QRectF(
                0.5 if first else -8,
                0.5,
                self.width() + (7.5 if not last else -1) + (0 if first else 8),
                self.height() - 1,
            )
            on = self._action.isChecked()
            sketch.box(rect, "line" if on else "panel2", "line", radius=6)
            if self.hasFocus():
                sketch.line(8, self.height() - 5, self.width() - 8, self.height() - 5, "now", 2)
            sketch.text(
                self.width() / 2,
                self.height() / 2 + 5,
                self._words,
                "text" if on else "dim",
                size=13,
                bold=on,
                anchor="middle",
            )


class Chip(QWidget):
    """A rounded fact: quiet words, then strong ones; a dot says that it lives."""

    clicked = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._quiet, self._strong, self._dot = "", "", ""
        self.setFixedHeight(27)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_words(self, quiet: str, strong: str, dot: str = "") -> None:
        """Show words and perhaps a dot in the colour of a token."""
        if (quiet, strong, dot) == (self._quiet, self._strong, self._dot):
            return
        self._quiet, self._strong, self._dot = quiet, strong, dot
        self.setAccessibleDescription(f"{quiet} {strong}")
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        width = text_width(self._quiet) + text_width(self._strong, bold=True) + (14 if self._dot else 0) + 25
        return QSize(round(width), 27)

    def mousePressEvent(self, _event: object) -> None:
        self.clicked.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            sketch = Sketch(painter, themes.active())
            sketch.box(QRectF(0.5, 0.5, self.width() - 1, self.height() - 1), None, "line", radius=13)
            x, y = 11.0, self.height() / 2 + 4.5
            if self._dot:
                sketch.box(QRectF(x, self.height() / 2 - 4.5, 9, 9), self._dot, radius=4.5)
                x += 14
            x += sketch.text(x, y, self._quiet, "dim") + 4
            sketch.text(x, y, self._strong, bold=True)


class Rule(QWidget):
    """A short vertical line between groups of buttons."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(9, HEIGHT)

    def sizeHint(self) -> QSize:
        return QSize(9, HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(4, 4, 1, 22, themes.active().color("line"))
