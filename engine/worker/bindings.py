"""What names stand for, told when it changes."""

from __future__ import annotations

import sys
import time
import types
from typing import Any

from stridescope.engine.events import ModuleNamed, NameBound, NameUnbound, Wire, journal
from stridescope.engine.worker.calls import Call
from stridescope.engine.worker.frame_locals import Read, reader_of
from stridescope.engine.worker.names import ATOMS, Bound, Names, Parts, can_change, look_at
from stridescope.engine.worker.rationing import UNFOLLOWED
from stridescope.engine.worker.text import SHORT_INT, short_text

BOUND = NameBound.code
# Names that a line merely reads are looked at again, and what is inside an argument is looked for, as long as all of
# that takes less than this: some seconds at once, so that a short script shows every change, and later this part of
# the time, so that a long one is not slowed.
REREAD_SECONDS, REREAD_SHARE = 0.05, 0.05
SMALL = frozenset({int, float, bool, type(None)})  # may be kept: they keep nothing else alive
UNKNOWN: Bound = (-1, "", ())


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
        read, plain = call.read or _reader(call, frame), call.plain
        for name in names.stored:  # as in _tell; a call less for each counter of a loop
            try:
                value = read(name)
            except (KeyError, NameError):
                self._forget(call, name)
                continue
            if type(value) not in SMALL:
                if name in plain:
                    del plain[name]
                self._tell_value(call, name, value)
            elif plain.get(name, call) is not value:
                _tell_small(call, name, value)
        if names.module and (module := self._modules.get(id(frame.f_globals))) is not None:
            for name in names.module:
                self._tell(module, name, frame.f_globals.__getitem__)
        if names.read and call.changing and not call.changing.isdisjoint(names.read):
            self._look_again(call, names, read)

    def look_at_arguments(self, call: Call, frame: types.FrameType) -> None:
        """Tell of a call's arguments; what is inside them is looked for while that costs little of the time."""
        read = call.read or _reader(call, frame)
        for name in call.code.arguments.stored:
            value = read(name)
            if type(value) in SMALL:
                _tell_small(call, name, value)
            elif type(value) is self._tensor or type(value) in ATOMS:
                self._tell_value(call, name, value)
            else:
                began = self._begin_look()
                self._tell_value(call, name, value)
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
        read = call.read or _reader(call, frame)
        for name in call.code.unfollowed:
            try:
                value = read(name)
            except (KeyError, NameError):
                self._forget(call, name)
                continue
            if type(value) in SMALL:
                if call.plain.get(name, call) is not value:
                    _tell_small(call, name, value)
                continue
            call.plain.pop(name, None)
            if type(value) is self._tensor or type(value) in ATOMS:
                self._tell_value(call, name, value)
                continue
            began = self._begin_look()
            if self._deep:
                self._tell_value(call, name, value)
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

    def _look_again(self, call: Call, names: Names, read: Read) -> None:
        """Look at what the line read and may have changed in place, while that costs little of the time."""
        began = self._begin_look()
        if self._deep:
            for name in names.read:
                if name in call.changing:
                    self._tell(call, name, read)
        self._end_look(began)

    def _begin_look(self) -> float:
        """Look as deep as the time allows that such looks may take, until :meth:`_end_look` adds what this one took."""
        began = time.perf_counter()
        self._deep = self._reread <= REREAD_SECONDS + REREAD_SHARE * (began - self._started)
        return began

    def _end_look(self, began: float) -> None:
        self._deep = True
        self._reread += time.perf_counter() - began

    def _tell(self, call: Call, name: str, read: Read) -> None:
        """Tell of a name, if what it stands for is not what was told last."""
        try:
            value = read(name)
        except (KeyError, NameError):
            self._forget(call, name)
            return
        if type(value) in SMALL:
            if call.plain.get(name, call) is not value:
                _tell_small(call, name, value)
            return
        call.plain.pop(name, None)
        self._tell_value(call, name, value)

    def _tell_value(self, call: Call, name: str, value: Any) -> None:
        before = call.known.get(name, UNKNOWN)
        if type(value) is self._tensor and value._id:  # what look_at would say, without asking
            bound: Bound = (value._id, "", ())
        else:
            bound = look_at(value, self._deep)
            if bound[0] and self._tensor is None:
                self._tensor = sys.modules["stridescope.engine.tensor"].Tensor
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
        if name in call.known:
            _tell_parts(call.id, name, call.known.pop(name)[2], ())
            call.plain.pop(name, None)
            call.changing.discard(name)
            emit((NameUnbound.code, call.id, name))


def _reader(call: Call, frame: types.FrameType) -> Read:
    return reader_of(frame) if call.space is None else call.space.__getitem__


def _tell_small(call: Call, name: str, value: object) -> None:
    """Tell of a number or the like, the most frequent kind of change, on a shorter way."""
    call.plain[name] = value
    known = call.known
    short = type(value) is not int or -SHORT_INT < value < SHORT_INT
    before, text = known.get(name, UNKNOWN), repr(value) if short else short_text(value)
    if before[1] == text and not before[0]:
        return
    known[name] = (0, text, ())
    if (send := journal.emit) is not None:
        send((BOUND, call.id, name, 0, text))
    if before[2]:
        _tell_parts(call.id, name, before[2], ())
    if call.changing:
        call.changing.discard(name)


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
