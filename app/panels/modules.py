"""Modules: a tree of what is inside each, which of it learns, whether it trains, and which forward runs."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal

from stridescope.app.items.table import Table, TableRow
from stridescope.app.moment import Moment
from stridescope.app.panels.modules_model import COLUMNS, ModuleRow, headline, rows
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.selection import NOTHING, Selection
from stridescope.app.text import tr

WIDTHS = (150, 64, 50, 56, 54, 70, 40)


class ModulesPanel(Table):
    """A row that stands for a tensor selects it; that of a module opens and closes."""

    pointed = Signal(object)
    picked = Signal(object)

    def __init__(self) -> None:
        super().__init__(tuple(tr(column) for column in COLUMNS), tr("Modules"))
        self._shown: list[ModuleRow] = []
        self._headline = ""
        self._moment: Moment | None = None
        self._turned: set[int] = set()
        self.own_keys = frozenset({Qt.Key.Key_Left, Qt.Key.Key_Right})
        self.row_picked.connect(lambda key: self.picked.emit(self._target(key)))
        self.row_turned.connect(self._turn)
        self.row_pointed.connect(lambda key: self.pointed.emit(self._target(key)))

    def present(self, moment: Moment) -> None:
        """Show the modules of this moment."""
        if self._moment is None or moment.recording is not self._moment.recording:
            self._turned.clear()
        self._moment, self._headline = moment, headline(moment)
        self._show()

    def _show(self) -> None:
        if self._moment is None:
            return
        self._shown = rows(self._moment, self._turned)
        chosen = self._moment.selection.tensor
        self.show_rows(
            [_table_row(number, row) for number, row in enumerate(self._shown, 1)],
            frozenset(n for n, row in enumerate(self._shown, 1) if row.tensor and row.tensor == chosen),
        )
        self.fit_columns(WIDTHS)

    def _turn(self, key: int) -> None:
        self._turned.symmetric_difference_update({self._shown[key - 1].module})
        self._show()

    def heading(self) -> tuple[str, str, str]:
        """How much learns."""
        return tr("Modules"), self._headline, ""

    def _target(self, key: int) -> Selection:
        tensor = self._shown[key - 1].tensor if 0 < key <= len(self._shown) else 0
        return Selection(tensor=tensor) if tensor else NOTHING


def _table_row(number: int, row: ModuleRow) -> TableRow:
    return TableRow(number, row.cells, row.storage, quiet=bool(row.module), indent=row.depth, opened=row.opened)


SPEC = PanelSpec(
    id="modules",
    title="Modules",
    help="What is inside each module, which of it learns, whether it trains, and whether its gradient is there",
    area="centre",
    make=ModulesPanel,
)
