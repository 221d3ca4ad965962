"""A painted surface with places that can be pointed at, clicked and read aloud."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from stridescope.app import theme as themes
from stridescope.app.items.sketch import Sketch
from stridescope.app.selection import NOTHING, Selection

ARROWS = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Spot:
    """A place on a canvas: what it selects and what it says when the mouse rests there.

    Without ``preview`` only a click selects: for places that would move away under the mouse.
    """

    rect: QRectF
    target: Callable[[QPointF], Selection]
    tip: str = ""
    preview: bool = True


class Canvas(QWidget):
    """Paints itself in :meth:`sketch`, which leaves a :class:`Spot` wherever something can be pointed at.

    ``pointed`` previews while the mouse moves, ``picked`` pins on a click; an empty selection means "let go".
    """

    pointed = Signal(object)
    picked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.spots: list[Spot] = []
        self.seen = QRectF()  # what is painted now: what lies outside need not be drawn, but leaves its spots
        self._at = QPointF()  # where Alt and the arrows stand
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def sketch(self, sketch: Sketch) -> None:
        """Paint; overridden by each panel."""
        raise NotImplementedError

    def spot(
        self, rect: QRectF, target: Selection | Callable[[QPointF], Selection], tip: str = "", *, preview: bool = True
    ) -> None:
        """Leave a place that selects ``target``."""
        self.spots.append(Spot(rect, target if callable(target) else lambda _point: target, tip, preview))

    def spot_at(self, point: QPointF) -> Spot | None:
        """Return the topmost spot under ``point``."""
        return next((s for s in reversed(self.spots) if s.rect.contains(point)), None)

    def target_at(self, point: QPointF) -> Selection:
        """Return what a click at ``point`` would select."""
        spot = self.spot_at(point)
        return spot.target(point) if spot else NOTHING

    def paintEvent(self, event: QPaintEvent) -> None:
        self.seen = QRectF(event.rect())
        theme = themes.active()
        with QPainter(self) as painter:  # ends it, whatever happens: one left open takes every other panel with it
            painter.fillRect(self.rect(), theme.color("panel"))
            self.spots.clear()
            self.sketch(Sketch(painter, theme))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        spot = self.spot_at(event.position())
        target = spot.target(event.position()) if spot else NOTHING
        self.setCursor(Qt.CursorShape.PointingHandCursor if target else Qt.CursorShape.ArrowCursor)
        self.pointed.emit(target if spot and spot.preview else NOTHING)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._at = event.position()
        if event.button() is Qt.MouseButton.LeftButton:
            self.picked.emit(self.target_at(event.position()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Alt and an arrow picks the nearest place in that direction: all that the mouse can reach, keys can."""
        direction = ARROWS.get(Qt.Key(event.key()))
        if direction is None or not event.modifiers() & Qt.KeyboardModifier.AltModifier:
            super().keyPressEvent(event)
            return
        places = [(spot, spot.rect.center()) for spot in self.spots]
        nearest = min(places, key=lambda place: _way(self._at, place[1], direction), default=None)
        if nearest is not None and _way(self._at, nearest[1], direction) < math.inf:
            self._at = nearest[1]
            self.picked.emit(nearest[0].target(nearest[1]))

    def leaveEvent(self, _event: QEvent) -> None:
        self.pointed.emit(NOTHING)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            spot = self.spot_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), themes.words_html(spot.tip) if spot else "", self)
            return True
        return super().event(event)


def _way(start: QPointF, end: QPointF, direction: tuple[int, int]) -> float:
    """Return how far ``end`` lies in a direction, what lies aside counting double; infinite where it lies behind."""
    dx, dy = end.x() - start.x(), end.y() - start.y()
    ahead, aside = (abs(dx), abs(dy)) if direction[0] else (abs(dy), abs(dx))
    return ahead + 2 * aside if dx * direction[0] + dy * direction[1] > 2 else math.inf
