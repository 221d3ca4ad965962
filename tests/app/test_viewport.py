"""Views of a world larger than its window: what fits is centred, what does not wastes no room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, QRectF

from stridescope.app.items.viewport import fitted, followed

WINDOW = QRectF(14, 14, 300, 400)
SPANS = st.floats(10, 5000)


@given(SPANS, SPANS, st.floats(0, 1), st.floats(0, 1))
def test_following_wastes_no_room(width: float, height: float, across: float, down: float) -> None:
    world = QRectF(-50, 20, width, height)
    centre = QPointF(world.left() + across * width, world.top() + down * height)
    view = followed(world, WINDOW, centre, 0.55)
    drawn = QRectF(view.to_screen(world.left(), world.top()), view.to_screen(world.right(), world.bottom()))
    point = view.to_screen(centre.x(), centre.y())
    assert WINDOW.adjusted(-1, -1, 1, 1).contains(point)
    for size, room, low, high, start, end in (
        (drawn.width(), WINDOW.width(), drawn.left(), drawn.right(), WINDOW.left(), WINDOW.right()),
        (drawn.height(), WINDOW.height(), drawn.top(), drawn.bottom(), WINDOW.top(), WINDOW.bottom()),
    ):
        if size <= room:
            assert start - 1 <= low and high <= end + 1
        else:
            assert low <= start + 1 and high >= end - 1


@given(SPANS, SPANS)
def test_a_fitted_world_is_seen_whole(width: float, height: float) -> None:
    world = QRectF(3, 4, width, height)
    view = fitted(world, WINDOW)
    drawn = QRectF(view.to_screen(world.left(), world.top()), view.to_screen(world.right(), world.bottom()))
    assert WINDOW.adjusted(-1, -1, 1, 1).contains(drawn) and view.scale <= 1
