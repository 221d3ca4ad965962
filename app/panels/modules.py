"""Modules: what is inside each, which of it learns, and whether its gradient is there."""

from __future__ import annotations

from PySide6.QtCore import Signal

from stridescope.app.items.table import Table, TableRow
from stridescope.app.moment import Moment
from stridescope.app.panels.modules_model import COLUMNS, ModuleRow, headline, rows
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.selection import NOTHING, Selection
from stridescope.app.text import tr

WIDTHS = (150, 64, 50, 56, 54, 70, 40)


class ModulesPanel(Table):
    """A row that stands for a tensor selects it; titles and remarks are quiet."""

    pointed = Signal(object)
    picked = Signal(object)

    def __init__(self) -> None:
        super().__init__(tuple(tr(column) for column in COLUMNS), tr("Modules"))
        self._shown: list[ModuleRow] = []
        self._headline = ""
        self.row_picked.connect(lambda key: self.picked.emit(self._target(key)))
        self.row_pointed.connect(lambda key: self.pointed.emit(self._target(key)))

    def present(self, moment: Moment) -> None:
        """Show the modules of this moment."""
        self._shown, self._headline = rows(moment), headline(moment)
        shown = [
            TableRow(n, row.cells, row.storage, quiet=not row.tensor, indent=row.depth)
            for n, row in enumerate(self._shown, 1)
        ]
        chosen = moment.selection.tensor
        self.show_rows(
            shown, frozenset(n for n, row in enumerate(self._shown, 1) if row.tensor and row.tensor == chosen)
        )
        self.fit_columns(WIDTHS)

    def heading(self) -> tuple[str, str, str]:
        """How much learns."""
        return tr("Modules"), self._headline, ""

    def _target(self, key: int) -> Selection:
        tensor = self._shown[key - 1].tensor if 0 < key <= len(self._shown) else 0
        return Selection(tensor=tensor) if tensor else NOTHING


SPEC = PanelSpec(
    id="modules",
    title="Modules",
    help="What is inside each module, which of it learns, and whether its gradient is there",
    area="centre",
    make=ModulesPanel,
)
