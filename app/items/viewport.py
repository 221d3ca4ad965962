"""A flat world seen through a window: pan, zoom, fit; the numbers of any picture larger than its panel."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import QPointF, QRectF

SMALLEST, LARGEST = 0.002, 3.0


@dataclasses.dataclass(frozen=True)
class View:
    """World point (x, y) is drawn at ``(x, y) * scale + (dx, dy)``."""

    scale: float = 1.0
    dx: float = 0.0
    dy: float = 0.0

    def to_screen(self, x: float, y: float) -> QPointF:
        """Return where a point of the world is drawn."""
        return QPointF(x * self.scale + self.dx, y * self.scale + self.dy)

    def to_world(self, point: QPointF) -> QPointF:
        """Return which point of the world is drawn at ``point``."""
        return QPointF((point.x() - self.dx) / self.scale, (point.y() - self.dy) / self.scale)

    def zoomed(self, factor: float, at: QPointF) -> View:
        """Return the view zoomed so that what is drawn at ``at`` stays there."""
        scale = min(LARGEST, max(SMALLEST, self.scale * factor))
        world = self.to_world(at)
        return View(scale, at.x() - world.x() * scale, at.y() - world.y() * scale)

    def moved(self, dx: float, dy: float) -> View:
        """Return the view shifted by pixels."""
        return View(self.scale, self.dx + dx, self.dy + dy)

    def blended(self, other: View, share: float) -> View:
        """Return the view ``share`` of the way to ``other``."""
        return View(
            *(a + (b - a) * share for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True))
        )


def fitted(world: QRectF, window: QRectF, largest: float = 1.0) -> View:
    """Return the view that shows all of ``world`` in ``window``, never larger than ``largest``."""
    scale = min(largest, window.width() / max(world.width(), 1), window.height() / max(world.height(), 1))
    scale = max(scale, SMALLEST)
    centre = window.center() - world.center() * scale
    return View(scale, centre.x(), centre.y())


def followed(world: QRectF, window: QRectF, centre: QPointF, scale: float) -> View:
    """Return the view at ``scale`` with ``centre`` in the middle, moved so that no room is wasted beside ``world``."""
    dx = _kept(world.left() * scale, world.right() * scale, window.left(), window.right(), centre.x() * scale)
    dy = _kept(world.top() * scale, world.bottom() * scale, window.top(), window.bottom(), centre.y() * scale)
    return View(scale, dx, dy)


def _kept(first: float, last: float, start: float, end: float, middle: float) -> float:
    """Return the shift along one axis: what fits is centred, what does not fills the window."""
    if last - first <= end - start:
        return (start + end) / 2 - (first + last) / 2
    return min(start - first, max(end - last, (start + end) / 2 - middle))
