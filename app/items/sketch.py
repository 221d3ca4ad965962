"""Drawing in tokens: a thin pencil over QPainter that speaks of boxes, words and curves as the mock-up does."""

from __future__ import annotations

import functools

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QPainter, QPainterPath

from stridescope.app import theme as themes
from stridescope.app.theme import Theme, mono_font, ui_font

Paint = QColor | QBrush | str | None


class Sketch:
    """A painter with a theme. Text is placed by its baseline; colours are tokens or QColors."""

    def __init__(self, painter: QPainter, theme: Theme) -> None:
        self.painter = painter
        self.theme = theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def color(self, paint: Paint) -> QColor:
        """Return the colour behind a token."""
        return self.theme.color(paint) if isinstance(paint, str) else QColor(paint)

    def text(
        self, x: float, y: float, text: str, color: Paint = "text", *, size: float = 12, bold: bool = False,
        mono: bool = False, anchor: str = "left", room: float = 0, keep: str = "start",
    ) -> float:  # fmt: skip
        """Draw ``text`` with its baseline at y and return its width.

        More than ``room`` is cut with an ellipsis; what stays is the ``start``, or the ``end`` of a path whose start
        many share.
        """
        text, width = _fitted(text, size, bold, mono, room, keep)
        self.painter.setFont(mono_font(size, bold=bold) if mono else ui_font(size, bold=bold))
        self.painter.setPen(self.color(color))
        left = x - width * {"left": 0.0, "middle": 0.5, "right": 1.0}[anchor]
        self.painter.drawText(QPointF(left, y), text)
        return width

    def box(
        self, rect: QRectF, fill: Paint = None, stroke: Paint = None, *, radius: float = 3, width: float = 1,
        dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a rounded rectangle."""
        self.painter.setBrush(self._brush(fill))
        self.painter.setPen(
            Qt.PenStyle.NoPen if stroke is None else themes.pen(self.color(stroke), width, dashed=dashed)
        )
        self.painter.drawRoundedRect(rect, radius, radius)

    def _brush(self, fill: Paint) -> QBrush:
        if fill is None:
            return QBrush(Qt.BrushStyle.NoBrush)
        return fill if isinstance(fill, QBrush) else QBrush(self.color(fill))

    def line(self, x1: float, y1: float, x2: float, y2: float, color: Paint = "line", width: float = 1) -> None:
        """Draw a straight line."""
        self.painter.setPen(themes.pen(self.color(color), width))
        self.painter.drawLine(QPointF(x1, y1), QPointF(x2, y2))

    def curve(
        self, start: QPointF, control1: QPointF, control2: QPointF, end: QPointF, color: Paint = "now",
        width: float = 2, *, dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a cubic curve."""
        path = QPainterPath(start)
        path.cubicTo(control1, control2, end)
        self.path(path, None, color, width, dashed=dashed)

    def path(
        self, path: QPainterPath, fill: Paint = None, stroke: Paint = None, width: float = 1, *, dashed: bool = False
    ) -> None:
        """Draw any path."""
        self.painter.setBrush(self._brush(fill))
        self.painter.setPen(
            Qt.PenStyle.NoPen if stroke is None else themes.pen(self.color(stroke), width, dashed=dashed)
        )
        self.painter.drawPath(path)


ELIDED = {"start": Qt.TextElideMode.ElideRight, "end": Qt.TextElideMode.ElideLeft}


@functools.lru_cache(maxsize=8192)
def _fitted(text: str, size: float, bold: bool, mono: bool, room: float, keep: str = "start") -> tuple[str, float]:
    """Return ``text`` cut to ``room`` pixels (0: as it is) and its width; measuring is slow, so it is remembered."""
    metrics = QFontMetricsF(mono_font(size, bold=bold) if mono else ui_font(size, bold=bold))
    width = metrics.horizontalAdvance(text)
    if not room or width <= room:
        return text, width
    text = metrics.elidedText(text, ELIDED[keep], room)
    return text, metrics.horizontalAdvance(text)


def text_width(text: str, *, size: float = 12, bold: bool = False, mono: bool = False) -> float:
    """Return how wide :meth:`Sketch.text` would draw."""
    return _fitted(text, size, bold, mono, 0)[1]
