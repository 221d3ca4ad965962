"""Dispatcher: the way of the current op from the call to the kernel."""

from __future__ import annotations

import dataclasses
import re

from PySide6.QtCore import QPointF, QRectF

from stridescope.app.items.canvas import Canvas
from stridescope.app.items.sketch import Sketch
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.panels.story_model import sentence
from stridescope.app.selection import Selection, tensor_name
from stridescope.app.text import tr
from stridescope.app.values import shape_text, short_dtype
from stridescope.engine import events as ev

SHOWN = (ev.DtypePromoted, ev.CopyMade, ev.OpFailed)


@dataclasses.dataclass(frozen=True)
class OpPath:
    """An op call: its inputs and outputs as (tensor, words), the keys it passes, what else it decided."""

    op: str
    inputs: tuple[tuple[int, str], ...]
    arguments: str
    keys: tuple[str, ...]
    outputs: tuple[tuple[int, str], ...]
    notes: tuple[str, ...]

    def words(self) -> str:
        """Return the path in words, for a screen reader."""
        inputs = ", ".join(words for _, words in self.inputs)
        return f"{self.op}({inputs}): " + " → ".join(self.keys)


def op_path(moment: Moment) -> OpPath | None:
    """Return the way of the op that runs or last ran."""
    op = moment.state.op
    if op is None:
        return None
    told = moment.recording.events(op.step, moment.step) if 0 <= op.step <= moment.step <= op.step + 2000 else []
    return OpPath(
        op.op,
        tuple((t, _tensor(moment, t)) for t in op.inputs),
        ", ".join(_argument(moment, a) for a in op.arguments),
        op.keys,
        tuple((t, _tensor(moment, t)) for t in op.outputs),
        tuple(sentence(e) for e in told if isinstance(e, SHOWN)),
    )


def _argument(moment: Moment, argument: object) -> str:
    """Return an argument as people write it; a tensor stands in the recording as ``%`` and its id."""
    if isinstance(argument, str) and re.fullmatch(r"%\d+", argument):
        return tensor_name(moment.state, int(argument[1:]))
    return str(argument)


def _tensor(moment: Moment, tensor: int) -> str:
    found = moment.state.tensors.get(tensor)
    if found is None:
        return tr("#{id}, gone", id=tensor)
    return f"{tensor_name(moment.state, tensor)}  {shape_text(found.sizes)} {short_dtype(found.dtype)}"


class DispatcherPanel(Canvas):
    """The inputs, one box per dispatch key, the outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Dispatcher"))
        self.path: OpPath | None = None
        self._hues: dict[int, int] = {}

    def present(self, moment: Moment) -> None:
        """Show the current op's way."""
        self.path = op_path(moment)
        self._hues = {t.id: t.storage for t in moment.state.tensors.values()}
        self.setAccessibleDescription(self.path.words() if self.path else "")
        self.setMinimumHeight(
            0
            if self.path is None
            else 190 + 58 * len(self.path.keys) + 34 * (len(self.path.inputs) + len(self.path.outputs))
        )
        self.update()

    def heading(self) -> tuple[str, str, str]:
        """The title alone."""
        return tr("Dispatcher"), "", ""

    def sketch(self, sketch: Sketch) -> None:
        if self.path is None:
            sketch.text(self.width() / 2, 120, tr("No op yet"), "dim", size=14, bold=True, anchor="middle")
            return
        x, y = 44.0, 50.0
        y = self._draw_tensors(sketch, tr("inputs"), self.path.inputs, x, y)
        if self.path.arguments:
            sketch.text(x, y, self.path.arguments, "dim", mono=True, room=self.width() - 2 * x)
            y += 26
        for key in (self.path.op, *self.path.keys):
            y = self._draw_key(sketch, key, x, y, first=key == self.path.op)
        for note in self.path.notes:
            sketch.text(x, y + 10, note, "bwd", room=self.width() - 2 * x)
            y += 22
        self._draw_tensors(sketch, tr("outputs"), self.path.outputs, x, y + 20)

    def _draw_tensors(
        self, sketch: Sketch, title: str, tensors: tuple[tuple[int, str], ...], x: float, y: float
    ) -> float:
        if not tensors:
            return y
        sketch.text(x, y, title, "dim")
        for tensor, words in tensors:
            rect = QRectF(x, y + 12, 260, 26)
            hue = sketch.theme.hue(self._hues.get(tensor, 0))
            sketch.box(rect, sketch.theme.mix(hue, 0.22, "panel2"), hue)
            sketch.text(x + 12, y + 29, words, mono=True, room=236)
            self.spot(rect, Selection(tensor=tensor))
            y += 34
        return y + 36

    def _draw_key(self, sketch: Sketch, key: str, x: float, y: float, *, first: bool) -> float:
        rect = QRectF(x, y, 260, 34)
        sketch.box(rect, "panel2", "now" if first else "line", radius=8, width=2 if first else 1.2)
        sketch.text(x + 130, y + 22, key, bold=first, mono=not first, anchor="middle", room=240)
        if not first:
            top = QPointF(x + 130, y)
            sketch.line(top.x(), top.y() - 20, top.x(), top.y(), "faint", 1.6)
        return y + 54


SPEC = PanelSpec(
    id="dispatcher",
    title="Dispatcher",
    help="The way of the current op from the call to the kernel",
    area="centre",
    make=DispatcherPanel,
)
