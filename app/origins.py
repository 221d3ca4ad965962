"""Where things came from: the source text of the op that made a tensor, the inputs that a node's op had.

Pure look-ups in the recording; what was found never changes, so it is remembered per recording.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from stridescope.engine.events import NameBound, OpBegan
from stridescope.engine.recording.model import Span, TensorState
from stridescope.engine.recording.reader import Recording

NEAR = 30  # bindings that are looked at after a tensor's birth, and before the step

_found: WeakKeyDictionary[Recording, dict[Any, Any]] = WeakKeyDictionary()


def memory_of(recording: Recording) -> dict[Any, Any]:
    """Return what was found in ``recording`` so far; it dies with the recording."""
    return _found.setdefault(recording, {})


def op_before(recording: Recording, step: int) -> OpBegan | None:
    """Return the op that ran, or last began, at ``step``."""
    memory = memory_of(recording)
    if (key := ("op", step)) not in memory:
        ops = recording.ops()
        at = int(np.searchsorted(ops, step, side="right")) - 1
        event = recording.event(int(ops[at])) if at >= 0 else None
        memory[key] = event if isinstance(event, OpBegan) else None
    found: OpBegan | None = memory[key]
    return found


def expression_of(recording: Recording, tensor: TensorState) -> str:
    """Return the source text that made ``tensor``, such as ``b[1:, ::2]``, or ""."""
    op = op_before(recording, tensor.born)
    if op is None or not op.line:
        return ""
    return source_text(recording, Span(op.source, op.line, op.column, op.end_line, op.end_column))


def source_text(recording: Recording, span: Span) -> str:
    """Return the text of a one-line span; longer ones and unknown files give ""."""
    source = recording.sources.get(span.source)
    lines = source.text.splitlines() if source else []
    if span.line != span.end_line or not 0 < span.line <= len(lines):
        return ""
    return lines[span.line - 1].encode()[span.column : span.end_column].decode(errors="replace")


def line_before(recording: Recording, step: int) -> int:
    """Return the line that ran at ``step``, or 0."""
    lines = recording.lines()
    at = int(np.searchsorted(lines, step, side="right")) - 1
    return int(recording.event(int(lines[at])).line) if at >= 0 else 0  # type: ignore[attr-defined]


def name_bound_at(recording: Recording, frame: int, name: str, tensor: TensorState, step: int) -> int:
    """Return the step up to ``step`` at which ``name`` was bound to ``tensor``, or -1 where it is not found quickly.

    A tensor mostly gets its name right after its birth; a parameter gets it not long before we look.
    """
    memory = memory_of(recording)
    key = ("bound", frame, name, tensor.id)
    if memory.get(key, step + 1) <= step:
        return int(memory[key])
    bindings = recording.steps_of(NameBound)
    bindings = bindings[: np.searchsorted(bindings, step, side="right")]
    after_birth = int(np.searchsorted(bindings, tensor.born))
    candidates = [
        *bindings[after_birth : after_birth + NEAR].tolist(),
        *reversed(bindings[after_birth:][-NEAR:].tolist()),
    ]
    for at in candidates:
        event = recording.event(at)
        if isinstance(event, NameBound) and (event.frame, event.name, event.tensor) == (frame, name, tensor.id):
            memory[key] = at
            return int(at)
    return -1


def recent_bindings(recording: Recording, step: int) -> dict[tuple[int, str], int]:
    """Return the last steps up to ``step`` at which names were bound, by (frame, name); only the latest few."""
    bindings = recording.steps_of(NameBound)
    latest = bindings[: np.searchsorted(bindings, step, side="right")][-NEAR:].tolist()
    events = ((recording.event(at), at) for at in latest)
    return {(event.frame, event.name): at for event, at in events if isinstance(event, NameBound)}
