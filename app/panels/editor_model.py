"""The editor's marks as data: current line, sub-expression, what each line's name stands for."""

from __future__ import annotations

import dataclasses
import re
from pathlib import PurePath

import numpy as np

from stridescope.app.moment import Moment
from stridescope.app.origins import line_before, name_bound_at, recent_bindings
from stridescope.app.selection import home_of
from stridescope.app.text import tr
from stridescope.app.values import shape_text, short_dtype
from stridescope.engine.recording.lines import source_lines
from stridescope.engine.recording.model import Frame, Name, Span, State, TensorState

DEEPEST = 100  # calls whose names are noted behind the lines: in a recursion the innermost say it
_PLAIN = re.compile(r"-?[\d.e+-]+|True|False|None|'[^']{0,24}'")  # values worth a word behind their line


@dataclasses.dataclass(frozen=True)
class Note:
    """What a line gave its name: words after the line, in the storage's hue."""

    text: str
    tensor: int
    storage: int


@dataclasses.dataclass(frozen=True)
class Mark:
    """A part of one line: 1-based line, columns in characters."""

    line: int
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class EditorPicture:
    """Everything that the editor draws over a file's text."""

    source: int
    path: str
    text: str
    line: int
    marks: tuple[Mark, ...]
    notes: dict[int, Note]
    where: str
    error: tuple[str, Mark] | None


def picture(moment: Moment) -> EditorPicture | None:
    """Return the marks for the file that runs at this moment, or None before any file is known."""
    state = moment.state
    source = moment.recording.sources.get(state.source or min(moment.recording.sources, default=0))
    if source is None:
        return None
    lines = source_lines(source.text)
    return EditorPicture(
        source=source.id,
        path=source.path,
        text=source.text,
        line=state.line if state.source else 0,
        marks=_marks(state, lines),
        notes=_notes(moment, source.id),
        where=_where(moment),
        error=_error(state, source.id, lines),
    )


def file_name(path: str) -> str:
    """Return the last part of a path of any system."""
    return PurePath(path.replace("\\", "/")).name


def is_python(path: str) -> bool:
    """Whether a source is Python by its name; the listing of a memory snapshot is not."""
    suffix = PurePath(file_name(path).partition(",")[0]).suffix
    return suffix in ("", ".py", ".pyw", ".pyi", ".ipynb") or path.startswith("<")


def columns_of(line: str, start: int, end: int) -> tuple[int, int]:
    """Turn CPython's UTF-8 byte columns into character columns."""
    raw = line.encode()
    return len(raw[:start].decode(errors="ignore")), len(raw[:end].decode(errors="ignore"))


def marks_of(span: Span, lines: list[str]) -> tuple[Mark, ...]:
    """Return the span as one mark per line."""
    marks = []
    for number in range(span.line, min(span.end_line, len(lines)) + 1):
        line = lines[number - 1]
        first = span.column if number == span.line else len(line) - len(line.lstrip())
        last = span.end_column if number == span.end_line else len(line.encode())
        marks.append(Mark(number, *columns_of(line, first, last)))
    return tuple(m for m in marks if m.end > m.start)


def _marks(state: State, lines: list[str]) -> tuple[Mark, ...]:
    op = state.op
    here = op is not None and op.span.source == state.source and op.span.line <= state.line <= op.span.end_line
    return marks_of(op.span, lines) if op and here else ()


def _error(state: State, source: int, lines: list[str]) -> tuple[str, Mark] | None:
    if state.error is None:
        return None
    kind, message, span = state.error
    found = marks_of(span, lines) if span.source == source else ()
    return (f"{kind}: {message}", found[0]) if found else None


def _where(moment: Moment) -> str:
    """Return ``line 6 · op 3 of 4 · relu``, or which backward node runs."""
    state, parts = moment.state, []
    if state.line:
        parts.append(tr("line {line}", line=state.line))
    backward = state.backward
    if backward and backward.running:
        done, total = backward.nodes_done, backward.nodes_total
        node = tr("backward node {n} of {total}", n=min(done + 1, total), total=total)
        parts.append(node if total else tr("backward pass"))  # it has begun, and its nodes are not counted yet
    elif state.op is not None and _on_line(state):
        at, total = _op_of_line(moment)
        parts += [tr("op {n} of {total}", n=at, total=total)] if at else []
        parts += [state.op.op.partition("::")[2] or state.op.op]
    return " · ".join(parts)


def _on_line(state: State) -> bool:
    return state.op is not None and state.op.span.line <= state.line <= state.op.span.end_line


def _op_of_line(moment: Moment) -> tuple[int, int]:
    """Return which op of the current line runs, and how many the line has so far."""
    lines, ops = moment.recording.lines(), moment.recording.ops()
    at = int(np.searchsorted(lines, moment.step, side="right"))
    first = int(lines[at - 1]) if at else 0
    last = int(lines[at]) if at < len(lines) else moment.recording.steps
    low, now, high = np.searchsorted(ops, [first, moment.step + 1, last])
    return int(now - low), int(high - low)


def _notes(moment: Moment, source: int) -> dict[int, Note]:
    """Return notes by line for what the frames of this file name: tensors, and plain values bound lately."""
    notes: dict[int, Note] = {}
    recent = recent_bindings(moment.recording, moment.step)
    for frame in moment.state.frames[-DEEPEST:]:
        if frame.source == source:
            for name in frame.names.values():
                bound, note = _noted(moment, frame, name, recent)
                if note is not None and bound > 0:
                    notes[line_before(moment.recording, bound - 1, frame.id)] = note
    return notes


def _noted(moment: Moment, frame: Frame, name: Name, recent: dict[tuple[int, str], int]) -> tuple[int, Note | None]:
    """Return the step at which a name was bound and what to say of it; nothing where there is nothing to say."""
    tensor = moment.state.tensors.get(name.tensor)
    if tensor is not None:
        bound = name_bound_at(moment.recording, frame.id, name.name, tensor, moment.step)
        return bound, Note(describe(moment.state, tensor, frame), tensor.id, tensor.storage)
    if _PLAIN.fullmatch(name.text):
        return recent.get((frame.id, name.name), -1), Note(f"{name.name} = {name.text}", 0, 0)
    return -1, None


def describe(state: State, tensor: TensorState, frame: Frame) -> str:
    """Return the tensor in a few words: ``3×4 f32``, ``4×3 view of a``, ``3×2 f32 grad_fn ReluBackward0``.

    Another tensor goes by the name that it has in ``frame``, where it has one.
    """
    home = home_of(state, tensor)
    if home is not None:
        name = next((n.name for n in frame.names.values() if n.tensor == home.id), home.names[0])
        return f"{shape_text(tensor.sizes)} " + tr("view of {name}", name=name)
    words = f"{shape_text(tensor.sizes)} {short_dtype(tensor.dtype)}"
    if tensor.node in state.nodes:
        return f"{words} grad_fn {state.nodes[tensor.node].name}"
    return f"{words} " + tr("leaf") if tensor.requires_grad else words
