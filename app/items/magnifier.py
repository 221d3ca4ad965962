"""A widget shown larger than it is: its words, lines and pictures alike, for the last row of a lecture hall."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QFrame, QGraphicsProxyWidget, QGraphicsScene, QGraphicsView, QVBoxLayout, QWidget

FACTORS = (0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5)


class Magnifier(QWidget):
    """Holds one widget. At factor 1 it is a plain child; else it is drawn through a scaled scene."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__()
        self.factor = 1.0
        self._widget = widget
        self._lens: Lens | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(widget)

    def magnify(self, factor: float) -> None:
        """Show the widget ``factor`` times as large; the keyboard stays where it is."""
        if factor == self.factor:
            return
        focus = (self._widget if self._lens is not None else self).window().focusWidget()
        self.factor = factor
        if factor == 1:
            self._put_back()
        elif self._lens is None:
            self._column.removeWidget(self._widget)
            self._lens = Lens(self._widget, factor)
            self._column.addWidget(self._lens)
        else:
            self._lens.show_at(factor)
        if focus is not None and self._widget.isAncestorOf(focus):
            focus.setFocus()

    def _put_back(self) -> None:
        assert self._lens is not None
        self._lens.release()
        self._column.removeWidget(self._lens)
        self._lens.deleteLater()
        self._lens = None
        self._column.addWidget(self._widget)
        self._widget.show()

    def next_factor(self, steps: int) -> float:
        """Return the factor that many steps further, while the widget has room at it."""
        room, least = self.size(), self._widget.minimumSizeHint()
        most = min(room.width() / least.width(), room.height() / least.height())
        there = [factor for factor in FACTORS if factor <= max(most, 1.0)]
        place = min(range(len(there)), key=lambda i: abs(there[i] - self.factor))
        return there[max(0, min(len(there) - 1, place + steps))]


class Lens(QGraphicsView):
    """Draws a widget through a scene, scaled; mouse and keys go back through it."""

    def __init__(self, widget: QWidget, factor: float) -> None:
        super().__init__()
        self._factor = 1.0
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        self.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self._proxy = QGraphicsProxyWidget()
        widget.setParent(None)
        self._proxy.setWidget(widget)
        scene = QGraphicsScene(self)
        scene.addItem(self._proxy)
        self.setScene(scene)
        self.show_at(factor)

    def show_at(self, factor: float) -> None:
        """Draw the widget ``factor`` times as large, and so small that it still fills the view."""
        self._factor = factor
        self.resetTransform()
        self.scale(factor, factor)
        self._fit()

    def release(self) -> None:
        """Let the widget go."""
        nothing: Any = None  # which Qt takes, and PySide's stubs forget
        self._proxy.setWidget(nothing)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        size = self.viewport().size() / self._factor
        self._proxy.setPos(QPointF())
        self._proxy.resize(size)
        self.setSceneRect(self._proxy.boundingRect())
