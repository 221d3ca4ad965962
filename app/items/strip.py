"""A row of storage elements along one axis that can be zoomed, with lanes and arcs that keep to it."""

from __future__ import annotations

import dataclasses

import numpy as np
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QBrush, QColor, QPainterPath

from stridescope.app.items.cells import CELLS_FROM, CellMatrix, cell_image, draw_cell, word_size
from stridescope.app.items.marked import Marked, runs
from stridescope.app.items.sketch import Sketch

WIDEST = 53.0  # pixels per element, as in the mock-up


@dataclasses.dataclass(frozen=True)
class Axis:
    """Elements ``first`` … ``first + span`` on ``width`` pixels from ``left``."""

    left: float
    width: float
    count: int
    first: float = 0.0
    span: float = 0.0
    widest: float = WIDEST

    @property
    def pitch(self) -> float:
        """Pixels per element."""
        return min(self.widest, self.width / max(self.span or self.count, 1))

    @property
    def right(self) -> float:
        """Where the last visible element ends."""
        return min(self.left + self.width, self.x(self.count))

    def x(self, element: float) -> float:
        """Return where ``element`` begins."""
        return self.left + (element - self.first) * self.pitch

    def middle(self, element: int) -> float:
        """Return the middle of ``element``."""
        return self.x(element) + (self.pitch - self.gap) / 2

    @property
    def gap(self) -> float:
        """Pixels between two elements."""
        return 3.0 if self.pitch > 12 else min(1.0, self.pitch * 0.15)

    def element(self, x: float) -> int:
        """Return the element at pixel ``x``, or -1."""
        found = int(np.floor((x - self.left) / self.pitch + self.first))
        return found if 0 <= found < self.count and self.left <= x <= self.right else -1

    def visible(self) -> range:
        """Return the elements that can be seen."""
        last = int(np.ceil(self.first + self.width / self.pitch))
        return range(max(0, int(self.first)), min(self.count, last))

    def zoomed(self, factor: float, at: float) -> Axis:
        """Return the axis zoomed by ``factor`` around pixel ``at``."""
        span = float(np.clip((self.span or self.count) / factor, min(4, self.count), self.count))
        anchor = self.first + (at - self.left) / self.pitch
        first = anchor - (at - self.left) / (self.width / span)
        return dataclasses.replace(self, first=float(np.clip(first, 0, self.count - span)), span=span)


@dataclasses.dataclass(frozen=True)
class Elements:
    """The elements of a strip: their values where known, which are lit, and the storage's hue."""

    values: np.ndarray | None
    lit: Marked
    hue: QColor


def draw_strip(sketch: Sketch, axis: Axis, y: float, height: float, row: Elements) -> None:
    """Draw elements along ``axis``."""
    if axis.pitch < CELLS_FROM:
        _draw_strip_image(sketch, axis, y, height, row)
        return
    font_size = word_size(row.values, axis.pitch - 7)
    words = row.values if font_size else None
    for element in axis.visible():
        rect = QRectF(axis.x(element), y, axis.pitch - axis.gap, height)
        value = None if words is None else words[element]
        draw_cell(sketch, rect, value, bool(row.lit.mask[element]), row.hue, font_size)


def _draw_strip_image(sketch: Sketch, axis: Axis, y: float, height: float, row: Elements) -> None:
    """Draw one column of pixels for many elements: lit where any is."""
    columns = max(1, int(axis.right - axis.left))
    edges = _edges(axis, columns)
    values = None if row.values is None else row.values[edges[:-1].clip(max=axis.count - 1)][None]
    image = cell_image(CellMatrix(values, row.lit.any_between(edges)[None], row.hue), sketch.theme)
    sketch.painter.drawImage(QRectF(axis.left, y, columns, height), image)
    sketch.box(QRectF(axis.left, y, columns, height), None, "line", radius=2)


def _edges(axis: Axis, columns: int) -> np.ndarray:
    """Return the element at which each of ``columns`` pixels begins, and the end."""
    edges = axis.first + np.arange(columns + 1) / axis.pitch
    return np.clip(edges.astype(np.int64), 0, axis.count)


def draw_lane(sketch: Sketch, axis: Axis, y: float, height: float, reads: Marked, fill: QColor | QBrush) -> None:
    """Draw which elements are read: one bar each, or runs of them where they are narrow."""
    for left, right in _bars(axis, reads):
        sketch.box(QRectF(left, y, max(1.0, right - left), height), fill, radius=2)


def _bars(axis: Axis, reads: Marked) -> list[tuple[float, float]]:
    if axis.pitch > 12:
        elements = [e for e in axis.visible() if reads.mask[e]]
        return [(axis.x(e), axis.x(e + 1) - axis.gap) for e in elements]
    columns = max(1, int(axis.right - axis.left))
    return [(axis.left + a, axis.left + b) for a, b in runs(reads.any_between(_edges(axis, columns)))]


def draw_arc(sketch: Sketch, axis: Axis, y: float, start: int, end: int, label: str, color: QColor) -> None:
    """Draw a jump from one element to another above the strip, its length written on top."""
    x1, x2 = axis.middle(start), axis.middle(end)
    height = float(np.clip(abs(x2 - x1) * 0.17, 15, 46))
    path = QPainterPath(QPointF(x1, y))
    lean = (x2 - x1) * 0.16
    path.cubicTo(QPointF(x1 + lean, y - height), QPointF(x2 - lean, y - height), QPointF(x2, y))
    sketch.path(path, None, color, 1.6)
    sketch.text((x1 + x2) / 2, y - height * 0.75 - 5, label, color, anchor="middle")
