"""Variables and calls as data: the names of each frame, innermost first."""

from __future__ import annotations

import dataclasses

from stridescope.app.moment import Moment
from stridescope.app.panels.editor_model import describe, file_name
from stridescope.app.text import tr
from stridescope.engine.recording.model import Frame


@dataclasses.dataclass(frozen=True)
class Variable:
    """A row: a frame's title (``frame`` set, ``name`` empty) or one of its names."""

    frame: int
    name: str
    text: str
    tensor: int
    storage: int


def variables(moment: Moment) -> list[Variable]:
    """Return the names of all frames, each frame under its title, the innermost first."""
    rows: list[Variable] = []
    for frame in reversed(moment.state.frames):
        if len(moment.state.frames) > 1:
            rows.append(Variable(frame.id, "", title(frame), 0, 0))
        rows += [_row(moment, frame, name) for name in frame.names]
    return rows


def title(frame: Frame) -> str:
    """Return ``forward()`` for a function, the script for its top level."""
    return tr("module") if frame.function == "<module>" else f"{frame.function}()"


def _row(moment: Moment, frame: Frame, key: str) -> Variable:
    name = frame.names[key]
    tensor = moment.state.tensors.get(name.tensor)
    if tensor is None:
        return Variable(frame.id, key, name.text, 0, 0)
    return Variable(frame.id, key, describe(moment.state, tensor, frame), tensor.id, tensor.storage)


@dataclasses.dataclass(frozen=True)
class Call:
    """A frame of the call stack."""

    frame: int
    function: str
    place: str


def calls(moment: Moment) -> list[Call]:
    """Return the call stack, innermost first."""
    found = []
    for frame in reversed(moment.state.frames):
        source = moment.recording.sources.get(frame.source)
        place = f"{file_name(source.path)}:{frame.line}" if source else str(frame.line)
        found.append(Call(frame.id, title(frame), place))
    return found
