"""Where things came from: the source text of the op that made a tensor, the inputs that a node's op had.

Pure look-ups in the recording; what was found never changes, so it is remembered per recording.
"""

from __future__ import annotations

import ast
import itertools
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from stridescope.engine.events import FrameEntered, LineReached, NameBound, OpBegan
from stridescope.engine.recording.lines import source_lines
from stridescope.engine.recording.model import Span, TensorState
from stridescope.engine.recording.reader import Recording

CALLS_PASSED = 500  # between a line's beginning and a step at which it still runs
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


def expression_of(recording: Recording, step: int) -> str:
    """Return the source text whose value the op at ``step`` gave, such as ``b[1:, ::2]``, or "".

    A call such as ``nn.Linear(2, 3)`` runs many ops, and none of them gives its value: it counts for the op that it
    names (and for what that is made of), or where a single op ran.
    """
    memory, key = memory_of(recording), ("text", step)
    if key in memory:
        return str(memory[key])
    text = _expression(recording, step)
    if len(recording.ops()) and step < recording.ops()[-1]:  # at the head the next op may still share the expression
        memory[key] = text
    return text


def _expression(recording: Recording, step: int) -> str:
    ops = recording.ops()
    at = int(np.searchsorted(ops, step, side="right")) - 1
    first = max(0, at - NEAR)
    around = [recording.event(int(i)) for i in ops[first : at + 2]]
    spans = [Span(e.source, e.line, e.column, e.end_line, e.end_column) for e in around if isinstance(e, OpBegan)]
    if at < 0 or not spans[at - first].line:
        return ""
    span = spans[at - first]
    text, called = source_text(recording, span), _called(source_text(recording, span))
    before = list(itertools.takewhile(lambda i: spans[i] == span, range(at - first, -1, -1)))
    alone = len(before) == 1 and spans[at - first + 1 :] != [span]
    names = {around[i].op.rpartition("::")[2] for i in before}  # type: ignore[attr-defined]
    return text if alone or not called or called in names else ""


def _called(text: str) -> str:
    """Return ``relu`` for ``x.relu()`` or ``F.relu(x)``, and "" for what is no call."""
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    if not isinstance(call, ast.Call):
        return ""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "(")


def source_text(recording: Recording, span: Span) -> str:
    """Return the text of a one-line span; longer ones and unknown files give ""."""
    source = recording.sources.get(span.source)
    lines = source_lines(source.text) if source else []
    if span.line != span.end_line or not 0 < span.line <= len(lines):
        return ""
    return lines[span.line - 1].encode()[span.column : span.end_column].decode(errors="replace")


def line_before(recording: Recording, step: int, frame: int) -> int:
    """Return the line of a frame that ran at ``step``, past the calls that it made; 0 where it is not found quickly."""
    memory = memory_of(recording)
    if (key := ("line", step, frame)) not in memory:
        memory[key] = _line_before(recording, step, frame)
    return int(memory[key])


def _line_before(recording: Recording, step: int, frame: int) -> int:
    lines, entered = recording.lines(), recording.steps_of(FrameEntered)
    for _ in range(CALLS_PASSED):
        at = int(np.searchsorted(lines, step, side="right")) - 1
        reached = recording.event(int(lines[at])) if at >= 0 else None
        if not isinstance(reached, LineReached):
            return 0
        if reached.frame == frame:
            return reached.line
        call = int(np.searchsorted(entered, lines[at], side="right")) - 1
        if call < 0:
            return 0
        step = int(entered[call]) - 1  # of the innermost call, or of one that it made before: further back all the same
    return 0


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
