"""Labels beside curves: none covers a node, another label or a curve, and none leaves the area."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QPainterPath

from stridescope.app.items.labels import Labels

AREA = QRectF(0, 0, 400, 300)
SIZE = QSizeF(90, 14)
PLACES = st.tuples(st.integers(0, 400), st.integers(0, 300))


def line(start: tuple[int, int], end: tuple[int, int]) -> QPainterPath:
    path = QPainterPath(QPointF(*start))
    path.lineTo(QPointF(*end))
    return path


def test_a_lone_label_stands_right_of_the_middle() -> None:
    curve = line((100, 50), (100, 150))
    place = Labels(AREA, [], [curve]).place(curve, SIZE)
    assert place is not None
    assert place.left() > 100 and place.center().y() == 100


@example(ends=[((0, 2), (73, 52))], nodes=[])  # the curve's middle lies on the edge of a place beside another share
@given(st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=12), st.lists(PLACES, max_size=6))
def test_no_label_covers_anything(
    ends: list[tuple[tuple[int, int], tuple[int, int]]], nodes: list[tuple[int, int]]
) -> None:
    boxes = [QRectF(x, y, 80, 30) for x, y in nodes]
    curves = [line(*pair) for pair in ends]
    labels = Labels(AREA, boxes, curves)
    placed = [place for curve in curves if (place := labels.place(curve, SIZE)) is not None]
    for i, place in enumerate(placed):
        assert AREA.contains(place)
        assert not any(place.intersects(box) for box in [*boxes, *placed[:i]])
        assert not any(place.contains(curve.pointAtPercent(0.5)) for curve in curves)


def test_where_no_place_is_free_there_is_no_label() -> None:
    curve = line((100, 50), (100, 150))
    assert Labels(AREA, [QRectF(0, 0, 400, 300)], [curve]).place(curve, SIZE) is None
