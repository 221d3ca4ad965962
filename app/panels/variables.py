"""Variables: the names of each frame and what they stand for."""

from __future__ import annotations

from PySide6.QtCore import Signal

from stridescope.app.items.table import Table, TableRow
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.panels.variables_model import Variable, variables
from stridescope.app.selection import NOTHING, Selection
from stridescope.app.text import tr


class VariablesPanel(Table):
    """A row that stands for a tensor selects it."""

    pointed = Signal(object)
    picked = Signal(object)

    def __init__(self) -> None:
        super().__init__((tr("name"), tr("value")), tr("Variables"))
        self._shown: list[Variable] = []
        self.row_picked.connect(lambda key: self.picked.emit(self._target(key)))
        self.row_pointed.connect(lambda key: self.pointed.emit(self._target(key)))

    def present(self, moment: Moment) -> None:
        """Show the names of this moment."""
        self._shown = variables(moment)
        rows = [_table_row(number, variable) for number, variable in enumerate(self._shown, 1)]
        marked = {i for i, v in enumerate(self._shown, 1) if v.tensor and v.tensor == moment.selection.tensor}
        self.show_rows(rows, frozenset(marked))
        self.fit_columns((110,))

    def heading(self) -> tuple[str, str, str]:
        """The title alone."""
        return tr("Variables"), "", ""

    def _target(self, key: int) -> Selection:
        tensor = self._shown[key - 1].tensor if 0 < key <= len(self._shown) else 0
        return Selection(tensor=tensor) if tensor else NOTHING


def _table_row(number: int, variable: Variable) -> TableRow:
    if not variable.name:
        return TableRow(number, (variable.text, ""), quiet=True)
    return TableRow(number, (variable.name, variable.text), variable.storage)


SPEC = PanelSpec(
    id="variables",
    title="Variables",
    help="The names of each frame and what they stand for",
    area="state",
    make=VariablesPanel,
)
