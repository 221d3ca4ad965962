"""How line events move the machine: frames, names, errors."""

from __future__ import annotations

from collections.abc import Callable

from stridescope.engine.events import (
    Event,
    ExceptionRaised,
    FrameEntered,
    FrameLeft,
    LineReached,
    ModuleNamed,
    NameBound,
    NameUnbound,
    ScriptEnded,
    Wire,
)
from stridescope.engine.recording.fold_module import find_path
from stridescope.engine.recording.machine import Machine, add, take
from stridescope.engine.recording.model import Frame, Name, Span


def _frame_entered(machine: Machine, wire: Wire) -> None:
    _, frame, parent, source, function, line = wire
    _forget_names(machine, frame)
    machine.frames.pop(frame)
    machine.frames.put(frame, Frame(frame, parent, source, function, line, {}))
    machine.source, machine.line, machine.here = source, line, frame


def _frame_left(machine: Machine, wire: Wire) -> None:
    _forget_names(machine, wire[1])
    left = machine.frames.pop(wire[1])
    if machine.frames.rows:
        # What called it goes on; the call entered last may be a generator that waits, or another thread's.
        caller = machine.frames.get(left.parent) if left is not None else None
        top = caller or next(reversed(machine.frames.rows.values()))
        machine.source, machine.line, machine.here = top.source, top.line, top.id


def _line_reached(machine: Machine, wire: Wire) -> None:
    _, machine.here, machine.source, machine.line = wire
    frame = machine.here
    if (row := machine.frames.edit(frame)) is not None:
        row.line = machine.line
    machine.error = None  # whatever was raised has been caught


def _forget_names(machine: Machine, frame: int) -> None:
    row = machine.frames.get(frame)
    for name in row.names.values() if row is not None else ():
        _release(machine, frame, name)


def _release(machine: Machine, frame: int, name: Name) -> None:
    if name.tensor:
        take(machine.named, name.tensor, (frame, name.name))
        machine.rename(name.tensor)
    if name.module:
        take(machine.modules_named, name.module, (frame, name.name))
        find_path(machine, name.module)


def _name_bound(machine: Machine, wire: Wire) -> None:
    _, frame, name, tensor, text = wire
    if (row := machine.frames.edit(frame)) is None:
        return
    if (before := row.names.get(name)) is not None:
        _release(machine, frame, before)
    row.names[name] = Name(name, tensor, text)
    if tensor:
        add(machine.named, tensor, (frame, name))
        machine.rename(tensor)


def _module_named(machine: Machine, wire: Wire) -> None:
    _, frame, name, module = wire
    row = machine.frames.edit(frame)
    if row is None or (before := row.names.get(name)) is None:
        return
    _release(machine, frame, before)
    row.names[name] = Name(name, 0, before.text, module)
    add(machine.modules_named, module, (frame, name))
    find_path(machine, module)


def _name_unbound(machine: Machine, wire: Wire) -> None:
    _, frame, name = wire
    row = machine.frames.edit(frame)
    if row is not None and (before := row.names.pop(name, None)) is not None:
        _release(machine, frame, before)


def _exception_raised(machine: Machine, wire: Wire) -> None:
    _, _frame, source, line, column, end_line, end_column, kind, message = wire
    machine.error = (kind, message, Span(source, line, column, end_line, end_column))


def _script_ended(machine: Machine, wire: Wire) -> None:
    machine.status = wire[1]


FOLDS: dict[type[Event], Callable[[Machine, Wire], None]] = {
    FrameEntered: _frame_entered,
    FrameLeft: _frame_left,
    LineReached: _line_reached,
    NameBound: _name_bound,
    ModuleNamed: _module_named,
    NameUnbound: _name_unbound,
    ExceptionRaised: _exception_raised,
    ScriptEnded: _script_ended,
}
