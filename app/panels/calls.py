"""Calls: which function called which."""

from __future__ import annotations

from stridescope.app.items.table import Table, TableRow
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.panels.variables_model import calls
from stridescope.app.text import tr


class CallsPanel(Table):
    """The innermost call stands first."""

    def __init__(self) -> None:
        super().__init__((tr("function"), tr("line")), tr("Calls"))

    def present(self, moment: Moment) -> None:
        """Show the call stack of this moment."""
        found = calls(moment)
        rows = [TableRow(i, (call.function, call.place)) for i, call in enumerate(found, 1)]
        self.show_rows(rows, frozenset({1} if rows else ()))
        self.fit_columns((160,))

    def heading(self) -> tuple[str, str, str]:
        """The title alone."""
        return tr("Calls"), "", ""


SPEC = PanelSpec(
    id="calls",
    title="Calls",
    help="Which function called which",
    area="state",
    make=CallsPanel,
)
