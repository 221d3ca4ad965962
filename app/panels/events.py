"""Events: everything that happened, one sentence a step; a click goes there."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from stridescope.app import theme as themes
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.panels.story_model import sentence
from stridescope.app.text import tr
from stridescope.app.theme import mono_font
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.store import RecordingError

FAMILY_COLORS = {"line": "dim", "op": "fwd", "memory": "ok", "graph": "now", "backward": "bwd"}


class _Events(QAbstractTableModel):
    """Reads an event only when its row is shown: a recording may hold millions."""

    def __init__(self) -> None:
        super().__init__()
        self.recording: Recording | None = None
        self.count = 0

    def rowCount(self, _parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return self.count

    def columnCount(self, _parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 3

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if self.recording is None or role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ForegroundRole):
            return None
        try:
            event = self.recording.event(index.row())
        except RecordingError:  # let go of for another that has not begun yet, or damaged, as the banner says
            return None
        if role == Qt.ItemDataRole.ForegroundRole:
            return themes.active().color(FAMILY_COLORS.get(event.family, "text") if index.column() == 1 else "dim")
        return (str(index.row() + 1), type(event).__name__, sentence(event).partition("\n")[0])[index.column()]

    def grow(self, recording: Recording) -> None:
        """Show ``recording`` as far as it is known."""
        if recording is not self.recording or recording.steps < self.count:
            self.beginResetModel()
            self.recording, self.count = recording, recording.steps
            self.endResetModel()
        elif recording.steps > self.count:
            self.beginInsertRows(QModelIndex(), self.count, recording.steps - 1)
            self.count = recording.steps
            self.endInsertRows()


class EventsPanel(QTableView):
    """``visited`` gives the step of the row that was clicked."""

    visited = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Events"))
        self._events = _Events()
        self.setModel(self._events)
        self.setFont(mono_font(11.5))
        self.setFrameStyle(0)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.horizontalHeader().hide()
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(20)
        self.horizontalHeader().setStretchLastSection(True)
        self.setColumnWidth(0, 52)
        self.setColumnWidth(1, 136)
        self.clicked.connect(lambda index: self.visited.emit(index.row()))
        self.activated.connect(lambda index: self.visited.emit(index.row()))

    def present(self, moment: Moment) -> None:
        """Show all events and mark the one we look at."""
        self._events.grow(moment.recording)
        if moment.step >= 0 and self.currentIndex().row() != moment.step:
            self.selectRow(moment.step)
            self.scrollTo(self._events.index(moment.step, 0), QAbstractItemView.ScrollHint.EnsureVisible)

    def heading(self) -> tuple[str, str, str]:
        """The title alone."""
        return tr("Events"), "", ""


SPEC = PanelSpec(
    id="events",
    title="Events",
    help="Everything that happened, one sentence a step",
    area="output",
    make=EventsPanel,
)
