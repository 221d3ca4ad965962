"""Two cursors and one selection."""

from __future__ import annotations

from stridescope.app.cursor import Cursor
from stridescope.app.selection import NOTHING, Selection


def test_the_view_follows_the_head_until_we_look_back() -> None:
    cursor = Cursor()
    cursor.advance(10)
    assert (cursor.view, cursor.live) == (10, True)
    cursor.look(4)
    cursor.advance(20)
    assert (cursor.view, cursor.head, cursor.live) == (4, 20, False)
    cursor.look(99)
    assert cursor.view == 20


def test_hover_wins_and_leaves_the_pinned() -> None:
    cursor, heard = Cursor(), []
    cursor.selected.connect(lambda: heard.append(cursor.hovered or cursor.selection))
    cursor.select(Selection(tensor=1))
    cursor.hover(Selection(tensor=2))
    cursor.hover(Selection(tensor=2))
    cursor.hover(NOTHING)
    assert heard == [Selection(tensor=1), Selection(tensor=2), Selection(tensor=1)]


def test_reset_forgets() -> None:
    cursor = Cursor()
    cursor.advance(5)
    cursor.select(Selection(tensor=3))
    cursor.reset()
    assert (cursor.head, cursor.view, cursor.selection) == (-1, -1, NOTHING)
