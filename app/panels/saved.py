"""Saved tensors: what each node keeps for backward, at which version, and whether it is still that."""

from __future__ import annotations

from PySide6.QtCore import Signal

from stridescope.app.items.table import Table, TableRow
from stridescope.app.moment import Moment
from stridescope.app.panels.saved_model import COLUMNS, SavedRow, headline, rows
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.selection import NOTHING, Selection
from stridescope.app.text import tr

WIDTHS = (110, 54, 58, 60, 46, 50)


class SavedPanel(Table):
    """A row selects its node and tensor; freed rows are quiet, hatched ones were overwritten."""

    pointed = Signal(object)
    picked = Signal(object)

    def __init__(self) -> None:
        super().__init__(tuple(tr(column) for column in COLUMNS), tr("Saved tensors"))
        self._shown: list[SavedRow] = []
        self._headline = ""
        self.row_picked.connect(lambda key: self.picked.emit(self._target(key)))
        self.row_pointed.connect(lambda key: self.pointed.emit(self._target(key)))
        self.rows.tip = self._tip

    def present(self, moment: Moment) -> None:
        """Show what the graph keeps at this moment."""
        self._shown, self._headline = rows(moment), headline(moment)
        marked = {i for i, row in enumerate(self._shown, 1) if row.node == moment.selection.node}
        shown = [TableRow(i, row.cells, row.storage, row.freed, row.stale) for i, row in enumerate(self._shown, 1)]
        self.show_rows(shown, frozenset(marked))
        self.fit_columns(WIDTHS)

    def heading(self) -> tuple[str, str, str]:
        """How much is kept."""
        return tr("Saved tensors"), self._headline, ""

    def _target(self, key: int) -> Selection:
        if not 0 < key <= len(self._shown):
            return NOTHING
        row = self._shown[key - 1]
        return Selection(node=row.node, tensor=row.tensor)

    def _tip(self, key: int) -> str:
        row = self._shown[key - 1]
        if row.stale:
            return tr("overwritten since it was saved: backward would refuse")
        return tr("what it saved is freed: a second backward would fail") if row.freed else ""


SPEC = PanelSpec(
    id="saved",
    title="Saved tensors",
    help="What each node keeps for backward, and whether it is still as it was",
    area="right",
    make=SavedPanel,
)
