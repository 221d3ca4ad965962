"""Variables: the names of each frame and what they stand for; containers and Modules open part by part."""

from __future__ import annotations

import dataclasses

import numpy as np
from PySide6.QtCore import Qt, Signal

from stridescope.app.items.table import PICTURE, Table, TableRow
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.panels.variables_model import AT_ONCE, Inside, Place, Variable, variables
from stridescope.app.recorded_values import NotRecorded, PastTensor
from stridescope.app.selection import NOTHING, Selection
from stridescope.app.text import tr
from stridescope.engine.recording.model import State
from stridescope.engine.worker.protocol import Inspect, Inspected

COLUMNS = ("name", "", "value", "stride", "device", "ver")  # the second one is the small picture
LARGEST_SHOWN = 1 << 16  # elements of a tensor that is drawn small


class VariablesPanel(Table):
    """A row that stands for a tensor selects it; ``inspect`` asks the script what is inside a value."""

    pointed = Signal(object)
    picked = Signal(object)
    inspect = Signal(object)

    def __init__(self) -> None:
        super().__init__(tuple(tr(word) if word else "" for word in COLUMNS), tr("Variables"))
        self._shown: list[Variable] = []
        self._opened: set[Place] = set()
        self._insides: dict[Place, Inside] = {}
        self._questions: dict[int, Place] = {}
        self._asked = 0
        self._insides_step = -1
        self._moment: Moment | None = None
        self._waiting = False
        self._pictures: dict[tuple[int, int, int], bytes] = {}
        self.own_keys = frozenset({Qt.Key.Key_Left, Qt.Key.Key_Right})
        self.row_picked.connect(lambda key: self.picked.emit(self._target(key)))
        self.row_turned.connect(self._turn)
        self.row_pointed.connect(lambda key: self.pointed.emit(self._target(key)))

    def allow(self, waiting: bool) -> None:
        """Whether a script waits that can be asked what is inside a value."""
        self._waiting = waiting

    def present(self, moment: Moment) -> None:
        """Show the names of this moment."""
        self._moment = moment
        if moment.step != self._insides_step:
            self._insides.clear()
            self._questions.clear()
            self._insides_step = moment.step
        self._show()

    def answer(self, reply: Inspected) -> None:
        """Take what is inside a value."""
        place = self._questions.pop(reply.number, None)
        if place is not None:
            self._insides[place] = Inside(reply.parts, reply.total)
            self._show()

    def heading(self) -> tuple[str, str, str]:
        """The title alone."""
        return tr("Variables"), "", ""

    @property
    def _live(self) -> bool:
        return self._waiting and self._moment is not None and self._moment.step == self._moment.head

    def _show(self) -> None:
        if self._moment is None:
            return
        self._shown = variables(self._moment, self._opened, self._insides if self._live else None)
        rows = [self._table_row(number, variable) for number, variable in enumerate(self._shown, 1)]
        chosen = self._moment.selection.tensor
        self.show_rows(rows, frozenset(i for i, v in enumerate(self._shown, 1) if v.tensor and v.tensor == chosen))
        self.fit_columns((90, 56, 150, 56, 46, 30))
        if self._live:
            for place in [v.place for v in self._shown if v.opened and v.place not in self._insides]:
                if place is not None and place.asks and place not in self._questions.values():
                    self._ask(place)

    def _ask(self, place: Place) -> None:
        assert self._moment is not None
        stack = [frame.id for frame in reversed(self._moment.state.stack)]
        if place.frame not in stack:  # it waits: the worker looks at the calls that run
            return
        level = stack.index(place.frame)
        self._asked += 1
        self._questions[self._asked] = place
        self.inspect.emit(Inspect(self._asked, place.name, place.path, place.first, place.count or AT_ONCE, level))

    def _turn(self, key: int) -> None:
        if (place := self._shown[key - 1].place) is not None:
            self._opened.symmetric_difference_update({place})
            self._show()

    def _target(self, key: int) -> Selection:
        tensor = self._shown[key - 1].tensor if 0 < key <= len(self._shown) else 0
        return Selection(tensor=tensor) if tensor else NOTHING

    def _table_row(self, number: int, variable: Variable) -> TableRow:
        if not variable.name:
            return TableRow(number, (variable.text, "", "", "", "", ""), quiet=True)
        cells = (variable.name, "", variable.text, *variable.facts)
        picture = self._picture(variable.tensor) if variable.tensor else b""
        row = TableRow(number, cells, variable.storage, quiet=variable.quiet, indent=variable.depth, picture=picture)
        return dataclasses.replace(row, opened=variable.opened)

    def _picture(self, tensor: int) -> bytes:
        assert self._moment is not None
        state = self._moment.state
        row = state.tensors[tensor]
        storage = state.storages.get(row.storage)
        key = (tensor, row.version, storage.written if storage else 0)
        if key not in self._pictures:
            if len(self._pictures) > 5000:
                self._pictures.clear()
            self._pictures[key] = small_picture(state, tensor)
        return self._pictures[key]


def small_picture(state: State, tensor: int) -> bytes:
    """Return a tensor's values as grey bytes, :data:`~.table.PICTURE` wide and high; b"" where they are not kept."""
    try:
        values = PastTensor(state, state.tensors[tensor]).array()
    except NotRecorded:
        return b""
    if not values.size or values.size > LARGEST_SHOWN:
        return b""
    flat = np.abs(values) if np.iscomplexobj(values) else values
    grid = np.asarray(flat, np.float64).reshape(-1, values.shape[-1] if values.ndim else 1)
    if len(grid) == 1 and grid.shape[1] > PICTURE[0]:
        grid = np.resize(grid[0], (PICTURE[1], -(-grid.shape[1] // PICTURE[1])))
    width, height = PICTURE
    grid = grid[np.arange(height) * len(grid) // height][:, np.arange(width) * grid.shape[1] // width]
    finite = grid[np.isfinite(grid)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    shade = np.full_like(grid, 0.5) if high == low else (np.nan_to_num(grid, nan=low) - low) / (high - low)
    return (np.clip(shade, 0, 1) * 255).astype(np.uint8).tobytes()


SPEC = PanelSpec(
    id="variables",
    title="Variables",
    help="The names of each frame and what they stand for",
    area="state",
    make=VariablesPanel,
)
