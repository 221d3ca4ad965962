"""Memory over steps: what is allocated as an area, what is reserved as a line, both with the bytes beside them."""

from __future__ import annotations

import dataclasses

import numpy as np
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath

from stridescope.app.items.sketch import Sketch
from stridescope.app.panels.allocator_model import Curve
from stridescope.app.values import size_text

AXIS = 64.0  # room for the sizes at the right
BAND, GAP = 26.0, 12.0
APART = 4  # reserved this many times what is allocated would press the area flat: it gets a band of its own
MOST_TICKS = 5


@dataclasses.dataclass(frozen=True)
class Scales:
    """The bytes at the top of the area, and at the top of the band of what is reserved (0: it has none)."""

    area: int
    band: int

    @property
    def ticks(self) -> list[int]:
        """Round sizes from the bottom of the area up."""
        step = 1
        while self.area // step >= MOST_TICKS:
            step *= 2
        return list(range(0, self.area + 1, step))


def scales(curve: Curve) -> Scales:
    """Return the scales in which both series can be read."""
    allocated, reserved = (int(series.max(initial=1)) for series in (curve.allocated, curve.reserved))
    return Scales(allocated, reserved) if reserved > APART * allocated else Scales(max(allocated, reserved), 0)


def draw(sketch: Sketch, curve: Curve, room: QRectF) -> None:
    """Draw the curve, its axis and the moment that is shown into ``room``."""
    found = scales(curve)
    used = BAND + GAP if found.band else 0
    area = room.adjusted(0, used, -AXIS, 0)
    _draw_axis(sketch, found, area)
    _draw_allocated(sketch, curve, area, found.area)
    band = QRectF(area.left(), room.top(), area.width(), BAND) if found.band else area
    if found.band:
        sketch.line(band.left(), band.bottom(), band.right(), band.bottom(), "line")
        _label(sketch, band.right(), band.top(), found.band)
    sketch.path(_stairs(band, curve, curve.reserved, found.band or found.area), None, "dim", 2)
    x = area.left() + area.width() * max(0, curve.view) / curve.last
    sketch.line(x, room.top() - 8, x, room.bottom(), "now", 2)


def _draw_axis(sketch: Sketch, found: Scales, area: QRectF) -> None:
    for size in found.ticks:
        y = area.bottom() - area.height() * size / found.area
        sketch.line(area.left(), y, area.right(), y, "line")
        _label(sketch, area.right(), y, size)


def _label(sketch: Sketch, x: float, y: float, size: int) -> None:
    sketch.text(x + 8, y + 4, size_text(size), "faint", size=10.5, mono=True)


def _draw_allocated(sketch: Sketch, curve: Curve, area: QRectF, top: int) -> None:
    outline = _stairs(area, curve, curve.allocated, top)
    fill = QPainterPath(outline)
    fill.lineTo(area.right(), area.bottom())
    fill.lineTo(area.left(), area.bottom())
    tint = sketch.theme.color("fwd")
    tint.setAlphaF(0.25)
    sketch.path(fill, tint)
    sketch.path(outline, None, "fwd", 2)


def _stairs(area: QRectF, curve: Curve, series: np.ndarray, top: int) -> QPainterPath:
    """Return bytes over steps as a staircase; of many samples per pixel the largest is drawn."""
    x = curve.steps / curve.last
    columns = np.minimum((x * area.width()).astype(np.int64), int(area.width()))
    first = np.flatnonzero(np.diff(columns, prepend=-1))
    heights = np.maximum.reduceat(series, first) if len(series) else series
    path = QPainterPath(QPointF(area.left(), area.bottom()))
    level = area.bottom()
    for column, value in zip(columns[first].tolist(), heights.tolist(), strict=True):
        path.lineTo(area.left() + column, level)
        level = area.bottom() - area.height() * value / top
        path.lineTo(area.left() + column, level)
    path.lineTo(area.right(), level)
    return path
