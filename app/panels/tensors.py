"""Tensors: every live tensor, where it looks and who made it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from stridescope.app.items.table import RowsByKey, Table, TableRow
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.panels.tensors_model import COLUMNS, Row, headline, listed, row, tip
from stridescope.app.selection import NOTHING, Selection
from stridescope.app.text import tr

WIDTHS = (62, 56, 56, 48, 50, 96, 34)
FILTER_WIDTH = 84  # pixels: leaves the header to the titles


class TensorsPanel(QWidget):
    """A filter in the header and a table; rows of one storage wear its hue."""

    pointed = Signal(object)
    picked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.table = Table(tuple(tr(c) for c in COLUMNS), tr("Tensors"))
        self.filter = QLineEdit(placeholderText=tr("filter…"), clearButtonEnabled=True)
        self.filter.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.filter.setMaximumWidth(FILTER_WIDTH)
        self.filter.setAccessibleName(tr("filter tensors"))
        self.filter.textChanged.connect(self._refresh)
        self.header_tool = self.filter
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.table)
        self.table.row_picked.connect(lambda key: self.picked.emit(Selection(tensor=key)))
        self.table.row_pointed.connect(lambda key: self.pointed.emit(Selection(tensor=key) if key else NOTHING))
        self._moment: Moment | None = None
        self.table.rows.tip = lambda key: tip(self._moment, key) if self._moment else ""

    def present(self, moment: Moment) -> None:
        """Show the live tensors; those that share the selected one's storage are not marked, only itself is."""
        self._moment = moment
        self._refresh()

    def heading(self) -> tuple[str, str, str]:
        """How many are alive, in how many storages."""
        return tr("Tensors"), headline(self._moment) if self._moment else "", ""

    def restyle(self) -> None:
        """Take the colours of the active theme."""
        self.table.restyle()

    def _refresh(self) -> None:
        moment = self._moment
        if moment is None:
            return
        shown = RowsByKey(listed(moment, self.filter.text()), lambda id: _table_row(row(moment, id)))
        self.table.show_rows(shown, frozenset({moment.selection.tensor}))
        self.table.fit_columns(WIDTHS)


def _table_row(found: Row) -> TableRow:
    return TableRow(found.tensor, found.cells, found.storage, not found.named, found.aliased)


SPEC = PanelSpec(
    id="tensors",
    title="Tensors",
    help="Every live tensor: shape, strides, offset, version and who made it",
    area="state",
    make=TensorsPanel,
)
