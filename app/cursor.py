"""Where we look: the head and the view cursor, and the one selection that all panels share."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from stridescope.app.selection import NOTHING, Selection


class Cursor(QObject):
    """The head is where the worker is, the view is where we look; while they are equal the view follows.

    ``hover`` is a preview that wins over ``selection`` while the mouse rests on something; a click pins.
    """

    moved = Signal()
    selected = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.head = -1
        self.view = -1
        self.selection = NOTHING
        self.hovered = NOTHING

    def reset(self) -> None:
        """Start again before the first step, with nothing selected."""
        self.head = self.view = -1
        self.selection = self.hovered = NOTHING
        self.moved.emit()

    def advance(self, head: int) -> None:
        """The recording grew: the head moves on, and the view with it unless we look at the past."""
        if head == self.head:
            return
        following = self.view == self.head
        self.head = head
        if following or self.view > head:
            self.view = head
        self.moved.emit()

    def look(self, step: int) -> None:
        """Look at ``step``; nothing is run again."""
        step = max(-1, min(step, self.head))
        if step != self.view:
            self.view = step
            self.moved.emit()

    def select(self, selection: Selection) -> None:
        """Pin ``selection``; pinning what is pinned already lets it go."""
        self.selection = selection
        self.selected.emit()

    def hover(self, selection: Selection) -> None:
        """Preview ``selection`` until the mouse leaves."""
        if selection != self.hovered:
            self.hovered = selection
            self.selected.emit()

    @property
    def live(self) -> bool:
        """Whether we look at the head."""
        return self.view == self.head
