"""Breakpoints: all of them, how often each was met, switched on and off, changed and removed."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QPushButton

from stridescope.app.items.table import Table, TableRow
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.points import Points, describe
from stridescope.app.text import plural, tr

_KEYS = frozenset({Qt.Key.Key_Space, Qt.Key.Key_Delete, Qt.Key.Key_Backspace, Qt.Key.Key_Return, Qt.Key.Key_Insert})
HELP = "Space switches on and off, Enter changes, Delete removes"


class BreakpointsPanel(Table):
    """Fed with the session's points; what is asked for comes out as signals that give the place in the list."""

    toggled = Signal(int)
    changed = Signal(int)
    removed = Signal(int)
    asked = Signal()  # for a new one

    def __init__(self) -> None:
        super().__init__((tr("stop when"), tr("hits"), tr("condition")), tr("Breakpoints"))
        self.header_tool = QPushButton(tr("New…"))
        self.header_tool.setAccessibleName(tr("new breakpoint"))
        self.header_tool.clicked.connect(self.asked)
        self.rows.tip = lambda _key: tr(HELP)
        self._count = 0
        self.own_keys = _KEYS

    def show_points(self, points: Points) -> None:
        """Show these breakpoints; those that do not stop are quiet."""
        self._count = len(points.all)
        rows = []
        for place, point in enumerate(points.all, 1):
            hits = str(points.hits.get(point, 0)) + (f" / {point.skip + 1}" if point.skip else "")
            words = ("● " if point.enabled else "○ ") + describe(point)
            cells = (words, points.remarks.get(point, hits), point.condition)
            rows.append(TableRow(place, cells, quiet=not point.enabled))
        self.show_rows(rows)
        self.fit_columns((170, 50, 70))

    def present(self, moment: Moment) -> None:
        """Breakpoints belong to the script, not to a moment of it."""

    def heading(self) -> tuple[str, str, str]:
        """How many there are."""
        return tr("Breakpoints"), plural(self._count, "{n} breakpoint", "{n} breakpoints") if self._count else "", ""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space, Enter and Delete act on the row, Insert makes a new one."""
        place, key = self.currentIndex().row(), Qt.Key(event.key())
        there = 0 <= place < self._count
        if key == Qt.Key.Key_Insert:
            self.asked.emit()
        elif there and key == Qt.Key.Key_Space:
            self.toggled.emit(place)
        elif there and key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.removed.emit(place)
        elif there and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.changed.emit(place)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click on the dot switches a breakpoint on and off."""
        super().mousePressEvent(event)
        index = self.indexAt(event.position().toPoint())
        if index.isValid() and index.column() == 0 and event.position().x() < 24:
            self.toggled.emit(index.row())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """A double click changes a breakpoint."""
        index = self.indexAt(event.position().toPoint())
        if index.isValid():
            self.changed.emit(index.row())


SPEC = PanelSpec(
    id="breakpoints",
    title="Breakpoints",
    help="Where and when the script stops",
    area="state",
    make=BreakpointsPanel,
)
