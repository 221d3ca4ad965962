"""Labels on curves: where each may stand so that it covers no node, no other label and no other curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPainterPath

_SHARES = (0.5, 0.36, 0.64, 0.24, 0.76)  # of the way along the curve, the best first
_AWAY = 9.0  # pixels between a curve and its label
_SAMPLES = 33  # points that stand for a curve


class Labels:
    """Finds a free place for each label in ``area``.

    ``boxes`` are what is there already, ``curves`` what must stay in sight.
    """

    def __init__(self, area: QRectF, boxes: Sequence[QRectF], curves: Sequence[QPainterPath]) -> None:
        self._area = area
        self._boxes = [_corners(box) for box in boxes]
        self._points = np.array([_sampled(curve) for curve in curves]).reshape(-1, 2)

    def place(self, curve: QPainterPath, size: QSizeF) -> QRectF | None:
        """Return where a label of ``size`` may stand beside ``curve``, and keep that place; None where none is free."""
        for place in _beside(curve, size):
            if self._area.contains(place) and self._free(place):
                self._boxes.append(_corners(place))
                return place
        return None

    def _free(self, place: QRectF) -> bool:
        left, top, right, bottom = _corners(place)
        x, y = self._points[:, 0], self._points[:, 1]
        if ((x >= left) & (x <= right) & (y >= top) & (y <= bottom)).any():
            return False
        return not any(left < r and right > x1 and top < b and bottom > y1 for x1, y1, r, b in self._boxes)


def _corners(box: QRectF) -> tuple[float, float, float, float]:
    return box.left(), box.top(), box.right(), box.bottom()


def _sampled(curve: QPainterPath) -> list[tuple[float, float]]:
    points = [curve.pointAtPercent(i / (_SAMPLES - 1)) for i in range(_SAMPLES)]
    return [(p.x(), p.y()) for p in points]


def _beside(curve: QPainterPath, size: QSizeF) -> Iterator[QRectF]:
    """Right of the curve, then left of it, at each of the shares."""
    for share in _SHARES:
        point = curve.pointAtPercent(share)
        top = point.y() - size.height() / 2
        yield QRectF(point.x() + _AWAY, top, size.width(), size.height())
        yield QRectF(point.x() - _AWAY - size.width(), top, size.width(), size.height())
