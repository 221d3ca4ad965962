"""What Python does in the user's files, told as events: calls, lines, names, exceptions.

The tracer is fed by one of the two watchers of :mod:`stridescope.engine.worker.watch` and knows nothing of how they
work. It holds no reference to any value of the script: a tensor dies when the script lets go of it.
"""

from __future__ import annotations

import itertools
import os
import time
import types
from collections.abc import Callable

from stridescope.engine.autograd.relay import Relay
from stridescope.engine.events import (
    ExceptionRaised,
    FrameEntered,
    FrameLeft,
    LineRationed,
    LineReached,
    ModuleNamed,
    NameBound,
    NameUnbound,
    SourceSeen,
    Wire,
    journal,
)
from stridescope.engine.worker.frame_locals import OPTIMIZED, Locals, Read, locals_of, reader_of
from stridescope.engine.worker.names import Bound, Names, Parts, can_change, look_at, plan, worth_showing
from stridescope.engine.worker.positions import Positions, Where, spans_of
from stridescope.engine.worker.rationing import NAMELESS, QUIET, STRIDE, UNFOLLOWED, Ration
from stridescope.engine.worker.text import SHORT_INT, short_text
from stridescope.engine.worker.tracebacks import entries

LINE, BOUND = LineReached.code, NameBound.code
# Names that a line merely reads are looked at again, and what is inside an argument is looked for, as long as all of
# that takes less than this: some seconds at once, so that a short script shows every change, and later this part of
# the time, so that a long one is not slowed.
REREAD_SECONDS, REREAD_SHARE = 0.05, 0.05
SAMPLES_PER_FLUSH = 64
SMALL = frozenset({int, float, bool, type(None)})  # may be kept: they keep nothing else alive
UNKNOWN: Bound = (-1, "", ())
Span = tuple[int, int, int, int]


class Code:
    """What the tracer knows of a code object of the user's files."""

    __slots__ = (
        "arguments", "asked", "calls", "free_calls", "is_module", "name", "names", "object", "optimized", "plan",
        "quiet", "source", "spans", "visits", "watched", "woken",
    )  # fmt: skip

    def __init__(self, code: types.CodeType, source: int) -> None:
        self.object, self.source = code, source
        self.plan = self.names = plan(code)  # where rationing sets in, `names` becomes a copy of the plan
        self.optimized = bool(code.co_flags & OPTIMIZED)  # a function, not a module or a class body
        self.is_module, self.name = code.co_name == "<module>", code.co_qualname
        self.arguments = Names(tuple(filter(worth_showing, code.co_varnames[: _argument_count(code)])), (), ())
        self.spans: list[Span] = []
        self.visits: dict[int, int] = {}  # how often each line was reached, estimated by samples
        self.calls, self.asked, self.quiet = 0, 0, False  # how often it was called since an op ran; not recorded?
        self.free_calls, self.woken = 0, False  # how often in a row it ran no op itself; did it, when not recorded?
        self.watched = False  # a watch's own note: does it report the lines of this code?

    def read_spans(self) -> list[Span]:
        """Decode the positions when the first op asks for one."""
        self.spans = spans_of(self.object)
        return self.spans


class Call:
    """A live frame of the user's files, and what was last told of its names."""

    __slots__ = ("asked", "changing", "code", "id", "known", "places", "plain", "space", "todo", "unfollowed")

    def __init__(self, number: int, code: Code, frame: types.FrameType) -> None:
        self.id, self.code, self.asked = number, code, 0
        # A module's or class body's own dict, taken now: in the midst of a comprehension f_locals shows its names only.
        self.space: Locals | None = None if code.optimized else frame.f_locals
        self.todo: Names | None = None  # the names of the line that runs now, looked at when the next is reached
        self.known: dict[str, Bound] = {}
        self.places: dict[int, Where] = {}  # by instruction: where its ops are recorded to be
        self.plain: dict[str, object] = {}  # small values themselves: telling that one is the same costs no text
        self.changing: set[str] = set()  # names whose value can change in place
        self.unfollowed: set[str] = set()  # names stored by rationed lines, to be looked at when the loop is over


class Tracer:
    """Turns what Python does in the user's files into events."""

    def __init__(self, belongs: Callable[[str], bool], every_line: bool = False) -> None:
        self.calls: dict[int, Call] = {}  # by id(frame); a frame object as the key would keep its values alive
        self.positions = Positions(self.calls)
        self.positions.wake = self._wake  # type: ignore[method-assign]
        self.sources: dict[str, int] = {}
        self._real_paths: dict[int, str] = {}
        self.main: Call | None = None
        self._belongs = belongs
        self._files: dict[str, bool] = {}
        self._codes: dict[int, Code | None] = {}
        self._kept: list[types.CodeType] = []  # every code asked for: its id stays its own
        self._modules: dict[int, Call] = {}  # by id(globals)
        self._numbers = itertools.count(1)
        self._started, self._reread, self._deep = time.perf_counter(), 0.0, True
        self._unwound: dict[int, Call] = {}  # calls that an exception ended, by id(frame)
        self.every_line, self.ration = every_line, Ration()
        self.ration.wanted = not every_line
        self._countdown, self._samples, self._asked = STRIDE, 0, 0
        self._dear = False  # do lines take more than their share of the time?
        self._looked_at: tuple[Call, int, int] | None = None  # the line sampled last among ops, and the ops until it
        self._interrupted = False  # an exception is on its way, or has ended calls
        self._raised_at = (0, 0, 0)  # the exception told of last: its id, the id of its frame, the instruction
        self._raised = 0  # id of the exception that is on its way and was told of

    def code_of(self, code: types.CodeType) -> Code | None:
        """Return what is known of a code object, None when it is not the user's."""
        try:
            return self._codes[id(code)]
        except KeyError:
            return self._meet(code)

    def _meet(self, code: types.CodeType) -> Code | None:
        path = code.co_filename
        if path not in self._files:
            self._files[path] = self._belongs(path)
        known = Code(code, self.source_of(path)) if self._files[path] else None
        self._codes[id(code)] = known
        self._kept.append(code)
        return known

    def source_of(self, path: str) -> int:
        """Return the number of a source file, telling of it the first time."""
        if path not in self.sources:
            self.sources[path] = len(self.sources) + 1
            emit((SourceSeen.code, self.sources[path], path))
        return self.sources[path]

    def new_frame(self) -> int:
        """Return a number that no frame has yet."""
        return next(self._numbers)

    def real_path(self, source: int) -> str:
        """Return a source's path as the file system has it, links followed."""
        if source not in self._real_paths:
            found = next((path for path, number in self.sources.items() if number == source), "")
            self._real_paths[source] = os.path.realpath(found)
        return self._real_paths[source]

    # ---- what the watchers report -----------------------------------------------------------------------------

    def enter(self, frame: types.FrameType, code: Code) -> Call:
        """A user's function is called, or a module of theirs begins."""
        if self._interrupted:
            self._settle()
        call = Call(self.new_frame(), code, frame)
        self.calls[id(frame)] = call
        if code.is_module:
            self._modules[id(frame.f_globals)] = call
            self.main = self.main or call
        line = code.object.co_firstlineno
        emit((FrameEntered.code, call.id, self._parent(frame), code.source, code.name, line))
        if code.arguments.stored:
            began = self._begin_look()
            self._look(call, frame, code.arguments)
            self._end_look(began)
        call.asked = self.positions.asked
        if self.ration.count_call(code, call.asked):
            self._hush(code)
        return call

    def _hush(self, code: Code) -> None:
        emit((LineRationed.code, code.source, code.object.co_firstlineno))
        self.positions.hushed.add(code.object)

    def _wake(self, frame: types.FrameType) -> None:
        """A function whose calls are not recorded runs an op: from this call on it is recorded, for good."""
        self.positions.hushed.discard(frame.f_code)
        code = self.code_of(frame.f_code)
        if code is not None:
            code.quiet, code.woken = False, True
            self.enter(frame, code)
            self.lifted()

    def _parent(self, frame: types.FrameType) -> int:
        outer, calls = frame.f_back, self.calls
        while outer is not None:
            call = calls.get(id(outer))
            if call is not None and call.code.object is outer.f_code:
                return call.id
            outer = outer.f_back or Relay.behind.get(outer)
        return 0

    def reach(self, frame: types.FrameType, line: int) -> bool:
        """A line is about to run: tell first what the last one did to names; return whether it is still of interest."""
        call = self.calls.get(id(frame))
        if call is None or call.code.object is not frame.f_code:
            code = self.code_of(frame.f_code)
            if code is None or code.quiet:
                return False
            call = self.enter(frame, code)
        if self._interrupted:
            self._settle()
        last, todo = call.todo, call.code.names.get(line)
        if todo is QUIET and last is QUIET:
            return False
        call.todo = todo
        if last is not None:
            self._look(call, frame, last)
        if todo is QUIET:
            return False
        if (send := journal.emit) is not None:
            send((LINE, call.id, call.code.source, line))
        self._countdown -= 1
        if not self._countdown:
            self._sample(call, line)
        return True

    def _sample(self, call: Call, line: int) -> None:
        """Look up, once in some hundred lines, whether this is a long loop; let the recording keep pace."""
        if self._looked_at is not None:
            self._sample_among_ops(call)
            return
        self._countdown = STRIDE
        self._samples += 1
        if not self._samples % SAMPLES_PER_FLUSH:
            self.keep_pace()
        asked, self._asked = self._asked, self.positions.asked
        if self._asked and not asked:
            self.ration.begin()
        self._dear = self.ration.is_too_dear()
        if not self.ration.wanted:
            return
        if asked == self._asked:
            self._ration(call, line)
        elif self._dear:  # whether the line itself runs an op is known when the next is reached
            self._looked_at, self._countdown = (call, line, self._asked), 1

    def _sample_among_ops(self, here: Call) -> None:
        """Count the line that was reached before this one, if neither it nor what it called ran an op."""
        self._countdown = STRIDE - 1
        if self._looked_at is not None:
            (call, line, asked), self._looked_at = self._looked_at, None
            if call is here and asked == self.positions.asked and self.ration.wanted:
                self._ration(call, line)

    def _ration(self, call: Call, line: int) -> None:
        if (rationed := self.ration.sample(call, line)) is not None:
            self._let_go_of_names(call, call.code.plan.get(line))
            if rationed is QUIET:
                emit((LineRationed.code, call.code.source, line))

    def _let_go_of_names(self, call: Call, names: Names | None) -> None:
        for name in names.stored if names is not None else ():
            call.unfollowed.add(name)
            if call.known.get(name) != (0, UNFOLLOWED, ()):
                if name in call.known:
                    _tell_parts(call.id, name, call.known[name][2], ())
                call.plain.pop(name, None)
                call.known[name] = (0, UNFOLLOWED, ())
                emit((NameBound.code, call.id, name, 0, UNFOLLOWED))

    def record_every_line(self, wanted: bool) -> None:
        """While ``wanted``, ration nothing; the frames that run catch up with their names at their next line."""
        self.ration.wanted = not (wanted or self.every_line)
        if wanted and self.ration.lift():
            self.positions.hushed.clear()
            self.lifted()

    def lifted(self) -> None:
        """Reach every line again; a watch that can leave lines out puts its own way here."""

    def keep_pace(self) -> None:
        """Let the recording take in what was told; whoever records puts its own way here."""

    def leave(self, frame: types.FrameType) -> None:
        """A call returns. The script's own module stays: its names live on until the end."""
        call = self.calls.get(id(frame))
        if call is None:
            return
        if call.todo is not None and not call.code.optimized:
            last, call.todo = call.todo, None
            self._look(call, frame, last)
        if call is not self.main:
            del self.calls[id(frame)]
            emit((FrameLeft.code, call.id))
            if self.ration.count_free_call(call.code, self.positions.asked - call.asked, self._dear):
                self._hush(call.code)

    def unwind(self, frame: types.FrameType, error: BaseException) -> None:
        """A call ends by an exception; that it ended is told when someone handles it, so that a failure stays seen."""
        call = self.calls.get(id(frame))
        if call is None:
            return
        if self._raised != id(error):
            self.raised(frame, error)
        if call is not self.main:
            del self.calls[id(frame)]
            self._unwound[id(frame)] = call
            self._interrupted = True

    def raised(self, frame: types.FrameType, error: BaseException) -> None:
        """An exception appears in a user's frame; the frames it passes through afterwards add nothing."""
        if self._raised == id(error) or isinstance(error, (StopIteration, StopAsyncIteration, GeneratorExit)):
            return
        call = self.calls.get(id(frame))
        if call is None:
            return
        self._raised, self._interrupted = id(error), True
        self._raised_at = (id(error), id(frame), frame.f_lasti)
        if call.todo is not None:
            self._look(call, frame, call.todo)
        spans = call.code.spans or call.code.read_spans()
        emit((ExceptionRaised.code, call.id, call.code.source, *spans[frame.f_lasti >> 1], *_described(error)))

    def _settle(self) -> None:
        """Someone goes on after an exception: the calls that it ended are gone now."""
        self._raised, self._raised_at, self._interrupted = 0, (0, 0, 0), False
        left, self._unwound = self._unwound, {}
        for call in left.values():
            emit((FrameLeft.code, call.id))

    def tell_failure(self, error: BaseException) -> None:
        """End the recording where an exception that nobody handled was raised, in the calls that led there.

        Lines that ran on its way out, those of ``finally`` and ``with``, have told that these calls are gone.
        """
        told = [entry for entry in entries(error.__traceback__) if self.code_of(entry.tb_frame.f_code)]
        if not told or self._raised_at == (id(error), id(told[-1].tb_frame), told[-1].tb_lasti):
            return
        parent = 0
        for entry in told:
            call = self._standing(entry.tb_frame) or self._stand_again(entry, parent)
            parent = call.id
        span = call.code.read_spans()[told[-1].tb_lasti >> 1]
        emit((ExceptionRaised.code, call.id, call.code.source, *span, *_described(error)))

    def _standing(self, frame: types.FrameType) -> Call | None:
        """Return the call of a frame that, for the recording, has not ended yet."""
        return self._unwound.get(id(frame)) or self.calls.get(id(frame))

    def _stand_again(self, entry: types.TracebackType, parent: int) -> Call:
        """Tell of a call and its names once more."""
        frame, code = entry.tb_frame, self.code_of(entry.tb_frame.f_code)
        assert code is not None
        call = Call(self.new_frame(), code, frame)
        emit((FrameEntered.code, call.id, parent, code.source, code.name, entry.tb_lineno))
        self._look(call, frame, Names(tuple(filter(worth_showing, locals_of(frame))), (), ()))
        return call

    # ---- names ------------------------------------------------------------------------------------------------

    def refresh(self, frame: types.FrameType) -> None:
        """Look again at every name of a frame, after something was evaluated in it."""
        call = self.calls.get(id(frame))
        if call is not None:
            names = [name for name in locals_of(frame) if worth_showing(name)]
            self._look(call, frame, Names((*dict.fromkeys([*call.known, *names]),), (), ()))

    def _look(self, call: Call, frame: types.FrameType, names: Names) -> None:
        """Tell of the names that changed."""
        read = reader_of(frame) if call.space is None else call.space.__getitem__
        if call.unfollowed:
            if call.todo is NAMELESS or call.todo is QUIET:
                return
            names = names._replace(stored=(*call.unfollowed, *names.stored))
            call.unfollowed.clear()
        plain = call.plain
        for name in names.stored:  # as in _tell; a call less for each counter of a loop
            try:
                value = read(name)
            except (KeyError, NameError):
                self._tell(call, name, read)
                continue
            if type(value) not in SMALL:
                plain.pop(name, None)
                self._tell_value(call, name, value)
            elif plain.get(name, call) is not value:
                self._tell_small(call, name, value)
        if names.module and (module := self._modules.get(id(frame.f_globals))) is not None:
            for name in names.module:
                self._tell(module, name, frame.f_globals.__getitem__)
        if names.read and call.changing and not call.changing.isdisjoint(names.read):
            self._look_again(call, names, read)

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
            if name in call.known:
                self._forget(call, name)
            return
        if type(value) in SMALL:
            if call.plain.get(name, call) is not value:
                self._tell_small(call, name, value)
            return
        if name in call.plain:
            del call.plain[name]
        self._tell_value(call, name, value)

    def _tell_small(self, call: Call, name: str, value: object) -> None:
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

    def _tell_value(self, call: Call, name: str, value: object) -> None:
        before, bound = call.known.get(name, UNKNOWN), look_at(value, self._deep)
        if bound != before:
            call.known[name] = bound
            if bound[0] != before[0] or bound[1] != before[1]:
                emit((NameBound.code, call.id, name, bound[0], bound[1]))
            if bound[2] or before[2]:
                _tell_parts(call.id, name, before[2], bound[2])
            (call.changing.add if can_change(value, bound) else call.changing.discard)(name)

    def _forget(self, call: Call, name: str) -> None:
        _tell_parts(call.id, name, call.known.pop(name)[2], ())
        call.plain.pop(name, None)
        call.changing.discard(name)
        emit((NameUnbound.code, call.id, name))


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
            emit((NameBound.code, frame, name + path, max(number, 0), ""))
        if number < 0:
            emit((ModuleNamed.code, frame, name + path, -number))


def _argument_count(code: types.CodeType) -> int:
    stars = bool(code.co_flags & 4) + bool(code.co_flags & 8)  # CO_VARARGS, CO_VARKEYWORDS
    return code.co_argcount + code.co_kwonlyargcount + stars


def _described(error: BaseException) -> tuple[str, str]:
    """Return the exception's type and message, as the last line of a traceback has them."""
    kind = type(error)
    name = (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )
    try:
        return name, str(error)
    except Exception:
        return name, "<exception str() failed>"
