"""What names stand for, told when it changes."""

from __future__ import annotations

import sys
import time
import types
from typing import Any

from stridescope.engine.events import LineReached, ModuleNamed, NameBound, NameUnbound, Wire, journal
from stridescope.engine.events.bundles import BOUND_AT, COUNTED, COUNTED_AT
from stridescope.engine.worker.calls import Call
from stridescope.engine.worker.frame_locals import reader_of
from stridescope.engine.worker.names import ATOMS, Bound, Names, Parts, can_change, look_at
from stridescope.engine.worker.rationing import UNFOLLOWED
from stridescope.engine.worker.text import short_text

BOUND, REACHED = NameBound.code, LineReached.code
# Names that a line merely reads are looked at again, and what is inside an argument is looked for, as long as all of
# that takes less than this: some seconds at once, so that a short script shows every change, and later this part of
# the time, so that a long one is not slowed.
REREAD_SECONDS, REREAD_SHARE = 0.05, 0.05
SMALL = frozenset({int, float, bool, type(None)})  # may be kept: they keep nothing else alive
LONG = 1 << 63  # integers from here on are told as text
UNKNOWN: Bound = (-1, "", ())
NOTHING = object()  # what a name stands for that was told of no small value


class Bindings:
    """Tells of names; it holds no reference to any value of the script but small ones."""

    def __init__(self) -> None:
        self._modules: dict[int, Call] = {}  # by id(globals)
        self._started, self._reread, self._deep = time.perf_counter(), 0.0, True
        self._tensor: type[Any] | None = None  # the engine's class, once it is loaded

    def add_module(self, frame: types.FrameType, call: Call) -> None:
        """Take note of the call that is a module's own code."""
        self._modules[id(frame.f_globals)] = call

    def look(self, call: Call, frame: types.FrameType, names: Names) -> None:
        """Tell of the names that changed."""
        self._look_at_stored(call, frame, names.stored)
        self._look_further(call, frame, names)

    def reach(self, call: Call, frame: types.FrameType, names: Names, line: int) -> None:
        """Tell of the names that the last line changed and that the next is reached: most often that is one row."""
        told, changing = False, call.changing
        if names.module or changing and not changing.isdisjoint(names.read):
            self.look(call, frame, names)
        elif len(names.places) == 1:
            values = call.values if call.lies.value == call.base else call.see()
            try:
                value = values[names.places[0]]
            except ValueError:
                self._forget(call, names.stored[0])
            else:
                told = self._tell(call, names.stored[0], value, line)
        elif names.stored:
            told = self._look_at_stored(call, frame, names.stored, line)
        if not told and (send := journal.emit) is not None:
            send((REACHED, call.id, call.code.source, line))

    def _look_at_stored(self, call: Call, frame: types.FrameType, names: tuple[str, ...], line: int = 0) -> bool:
        """Tell of the names that stand for something else now; a line goes with the last, as in :meth:`_tell`."""
        told = False
        for name in names:
            try:
                value = _read(call, frame, name)
            except (KeyError, NameError, ValueError):
                self._forget(call, name)
                told = False
            else:
                told = self._tell(call, name, value, line if name is names[-1] else 0)
        return told

    def _look_further(self, call: Call, frame: types.FrameType, names: Names) -> None:
        """Look at the names of the module that a line stored, and again at those whose value it may have changed."""
        if names.module and (module := self._modules.get(id(frame.f_globals))) is not None:
            for name in names.module:
                if name in frame.f_globals:
                    self._tell(module, name, frame.f_globals[name])
                else:
                    self._forget(module, name)
        if names.read and call.changing and not call.changing.isdisjoint(names.read):
            self._look_again(call, frame, names)

    def look_at_arguments(self, call: Call, frame: types.FrameType) -> None:
        """Tell of a new call's arguments; what is inside them is looked for while that costs little of the time."""
        whole, send = journal.whole, journal.emit
        for name, place in call.code.arguments:
            try:
                value = call.values[place] if place >= 0 else _read(call, frame, name)
            except (KeyError, NameError, ValueError):  # deleted: the call has run for a while when it is met
                continue
            # As in `_tell`, but that nothing was told of the name yet.
            if (kind := type(value)) in SMALL and whole is not None and (kind is not int or -LONG < value < LONG):
                call.plain[name] = value
                whole((COUNTED, call.id, name, value))
            elif kind is self._tensor and value._id and send is not None:
                call.known[name] = (number := value._id, "", ())
                send((BOUND, call.id, name, number, ""))
            elif kind in ATOMS or kind is self._tensor:
                self._tell(call, name, value)
            else:
                began = self._begin_look()
                self._tell(call, name, value)
                self._end_look(began)

    def let_go(self, call: Call, names: Names | None) -> None:
        """Follow the names that a rationed line stores no longer, but where :meth:`catch_up` is called."""
        for name in names.stored if names is not None else ():
            call.code.unfollowed[name] = None
            self._say_unfollowed(call, name)

    def catch_up(self, call: Call, frame: types.FrameType) -> None:
        """Tell of the names that rationed lines store: one that is recorded again shows what they did meanwhile.

        What costs more than a number or a tensor is looked at while that takes little of the time; else it is said
        not to be followed.
        """
        for name in call.code.unfollowed:
            try:
                value = _read(call, frame, name)
            except (KeyError, NameError, ValueError):
                self._forget(call, name)
                continue
            if call.plain.get(name, NOTHING) is value:
                continue
            if (kind := type(value)) in ATOMS or kind is self._tensor:
                self._tell(call, name, value)
                continue
            began = self._begin_look()
            if self._deep:
                self._tell(call, name, value)
            else:
                self._say_unfollowed(call, name)
            self._end_look(began)

    def _say_unfollowed(self, call: Call, name: str) -> None:
        if call.known.get(name) != (0, UNFOLLOWED, ()):
            if name in call.known:
                _tell_parts(call.id, name, call.known[name][2], ())
            call.plain.pop(name, None)
            call.known[name] = (0, UNFOLLOWED, ())
            emit((BOUND, call.id, name, 0, UNFOLLOWED))

    def _look_again(self, call: Call, frame: types.FrameType, names: Names) -> None:
        """Look at what the line read and may have changed in place, while that costs little of the time."""
        began = self._begin_look()
        if self._deep:
            for name in names.read:
                if name in call.changing:
                    try:
                        value = _read(call, frame, name)
                    except (KeyError, NameError, ValueError):
                        self._forget(call, name)
                        continue
                    self._tell(call, name, value)
        self._end_look(began)

    def _begin_look(self) -> float:
        """Look as deep as the time allows that such looks may take, until :meth:`_end_look` adds what this one took."""
        began = time.perf_counter()
        self._deep = self._reread <= REREAD_SECONDS + REREAD_SHARE * (began - self._started)
        return began

    def _end_look(self, began: float) -> None:
        self._deep = True
        self._reread += time.perf_counter() - began

    def _tell(self, call: Call, name: str, value: Any, line: int = 0) -> bool:
        """Tell of a name, if what it stands for is not what was told last.

        Where a ``line`` is given and can go in the same row, that it is reached is told too: return whether it was.
        """
        kind = type(value)
        if kind in SMALL:
            before = call.plain.get(name, NOTHING)
            if value is before:
                return False
            call.plain[name] = value
            if name in call.known or value == before or kind is int and not -LONG < value < LONG or value != value:
                return _tell_odd(call, name, value, before)
            if (whole := journal.whole) is None:
                emit((BOUND, call.id, name, 0, repr(value)))
            elif line:
                whole((COUNTED_AT, call.id, name, value, call.code.source, line))
                return True
            else:
                whole((COUNTED, call.id, name, value))
            return False
        if kind is self._tensor and (number := value._id) and name not in call.changing:
            before = call.known.get(name, UNKNOWN)
            if not before[2]:  # what is said below, without asking
                if before[0] == number:
                    return False
                call.known[name] = (number, "", ())
                call.plain.pop(name, None)
                if line and (whole := journal.whole) is not None:
                    whole((BOUND_AT, call.id, name, number, "", call.code.source, line))
                    return True
                emit((BOUND, call.id, name, number, ""))
                return False
        self._tell_value(call, name, value)
        return False

    def _tell_value(self, call: Call, name: str, value: Any) -> None:
        """Tell of a name that stands for no small value."""
        before = call.known.get(name, UNKNOWN)
        bound = look_at(value, self._deep)
        if bound[0] and self._tensor is None:
            self._tensor = sys.modules["stridescope.engine.tensor"].Tensor
        call.plain.pop(name, None)
        if bound == before:
            return
        call.known[name] = bound
        if bound[0] != before[0] or bound[1] != before[1]:
            emit((BOUND, call.id, name, bound[0], bound[1]))
        if bound[2] or before[2]:
            _tell_parts(call.id, name, before[2], bound[2])
        if not bound[0] and can_change(value, bound):
            call.changing.add(name)
        elif call.changing:
            call.changing.discard(name)

    def _forget(self, call: Call, name: str) -> None:
        if name in call.plain:
            del call.plain[name]
        elif name in call.known:
            _tell_parts(call.id, name, call.known.pop(name)[2], ())
            call.changing.discard(name)
        else:
            return
        emit((NameUnbound.code, call.id, name))


def _tell_odd(call: Call, name: str, value: Any, before: Any) -> bool:
    """Tell of a small value that is perhaps what was told, or is no usual number, or takes another's place."""
    kind = type(value)
    if kind is type(before) and (value == before or value != value) and repr(value) == repr(before):
        return False
    long = kind is int and not -LONG < value < LONG
    if long or (whole := journal.whole) is None:
        emit((BOUND, call.id, name, 0, short_text(value)))
    else:
        whole((COUNTED, call.id, name, value))
    known = call.known.pop(name, UNKNOWN)
    call.changing.discard(name)
    if known[2]:
        _tell_parts(call.id, name, known[2], ())
    return False


def _read(call: Call, frame: types.FrameType, name: str) -> Any:
    """Read a name; raises KeyError, NameError or ValueError where it stands for nothing."""
    if call.space is not None:
        return call.space[name]
    layout = call.code.layout
    if layout is None:
        return reader_of(frame)(name)
    values = call.values if call.lies.value == call.base else call.see()
    return values[layout.places[name]] if name in layout.places else layout.in_cell(values, name)


def emit(wire: Wire) -> None:
    """Send an event when something records."""
    if (send := journal.emit) is not None:
        send(wire)


def _tell_parts(frame: int, name: str, before: Parts, after: Parts) -> None:
    """Tell of the tensors and modules inside a value: those that are gone, then those that are new or others."""
    gone, now = dict(before), dict(after)
    for path in gone.keys() - now.keys():
        if path:  # what the name itself stood for, a module, has been told by its new binding
            emit((NameUnbound.code, frame, name + path))
    for path, number in after:
        if gone.get(path) == number:
            continue
        if path:
            emit((BOUND, frame, name + path, max(number, 0), ""))
        if number < 0:
            emit((ModuleNamed.code, frame, name + path, -number))
