"""Hooks: every call of one, on which node or gradient, in which backward pass."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, Signal

from stridescope.app.items.table import Table, TableRow
from stridescope.app.moment import Moment
from stridescope.app.panels.hooks_model import COLUMNS, HookRow, headline, rows
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.selection import NOTHING, Selection
from stridescope.app.text import tr

WIDTHS = (50, 110, 70, 120, 90)
HELP = "A double click goes to the step at which it had run"


class HooksPanel(Table):
    """A row selects its node and gradient; the one that has just run is marked."""

    pointed = Signal(object)
    picked = Signal(object)
    visited = Signal(int)

    def __init__(self) -> None:
        super().__init__(tuple(tr(column) for column in COLUMNS), tr("Hooks"))
        self._shown: list[HookRow] = []
        self._headline = ""
        self.row_picked.connect(lambda key: self.picked.emit(self._target(key)))
        self.row_pointed.connect(lambda key: self.pointed.emit(self._target(key)))
        self.doubleClicked.connect(self._visit)
        self.rows.tip = lambda _key: tr(HELP)

    def present(self, moment: Moment) -> None:
        """Show the hooks that ran up to this moment."""
        self._shown, self._headline = rows(moment), headline(moment)
        places = {row.tensor: moment.state.tensors[row.tensor].storage for row in self._shown if row.tensor}
        shown = [TableRow(n, row.cells, places.get(row.tensor, 0)) for n, row in enumerate(self._shown, 1)]
        self.show_rows(shown, frozenset({1}) if self._shown and self._shown[0].step == moment.step else frozenset())
        self.fit_columns(WIDTHS)

    def heading(self) -> tuple[str, str, str]:
        """How many ran."""
        return tr("Hooks"), self._headline, ""

    def _target(self, key: int) -> Selection:
        if not 0 < key <= len(self._shown):
            return NOTHING
        row = self._shown[key - 1]
        return Selection(node=row.node, tensor=row.tensor)

    def _visit(self, index: QModelIndex) -> None:
        self.visited.emit(self._shown[index.row()].step)


SPEC = PanelSpec(
    id="hooks",
    title="Hooks",
    help="Every call of a hook: on which node or gradient, in which backward pass",
    area="right",
    make=HooksPanel,
)
