"""What Python does in the user's files, told as events: calls, lines, names, exceptions.

The tracer is fed by one of the two watchers of :mod:`stridescope.engine.worker.watch` and knows nothing of how they
work. It holds no reference to any value of the script: a tensor dies when the script lets go of it.
"""

from __future__ import annotations

import itertools
import os
import types

from stridescope.engine.autograd.relay import Relay
from stridescope.engine.events import (
    ExceptionRaised,
    FrameEntered,
    FrameLeft,
    LineRationed,
    LineReached,
    SourceSeen,
    journal,
)
from stridescope.engine.worker.belongs import Belongs
from stridescope.engine.worker.bindings import Bindings, emit
from stridescope.engine.worker.calls import Call, Code
from stridescope.engine.worker.frame_locals import locals_of
from stridescope.engine.worker.names import Names, worth_showing
from stridescope.engine.worker.positions import Positions
from stridescope.engine.worker.rationing import AMONG_OPS, DEAR_STRIDE, NAMELESS, QUIET, STRIDE, Ration
from stridescope.engine.worker.tracebacks import entries

LINE, ENTERED, LEFT = LineReached.code, FrameEntered.code, FrameLeft.code
LINES_PER_FLUSH = 16_000


class Tracer:
    """Turns what Python does in the user's files into events."""

    def __init__(self, belongs: Belongs, every_line: bool = False) -> None:
        self.calls: dict[int, Call] = {}  # by id(frame); a frame object as the key would keep its values alive
        self.positions = Positions(self.calls)
        self.positions.wake = self._wake  # type: ignore[method-assign]
        self.sources: dict[str, int] = {}
        self._real_paths: dict[int, str] = {}
        self.main: Call | None = None
        self.belongs = belongs
        self._codes: dict[int, Code | None] = {}
        self._kept: list[types.CodeType] = []  # every code asked for: its id stays its own
        self._numbers = itertools.count(1)
        self.bindings = Bindings()
        self._look, self._tell = self.bindings.look, self.bindings.reach
        self._unwound: dict[int, Call] = {}  # calls that an exception ended, by id(frame)
        self.every_line, self.ration = every_line, Ration()
        self.ration.wanted = not every_line
        self._countdown = self._stride = STRIDE  # lines until the next sample, and from one to the next
        self._unflushed = self._asked = self._alone = 0  # lines since the last flush; ops; lines since the last op
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
        known = Code(code, self.source_of(code.co_filename), self.compiled(code)) if self.belongs(code) else None
        self._codes[id(code)] = known
        self._kept.append(code)
        return known

    def compiled(self, code: types.CodeType) -> types.CodeType:
        """Return what the compiler made of a code; a watch that puts more into it says so here."""
        return code

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
        call = self.calls[id(frame)] = Call(next(self._numbers), code, frame)
        if code.is_module:
            self.bindings.add_module(frame, call)
            self.main = self.main or call
        if (send := journal.emit) is not None:
            send((ENTERED, call.id, self._parent(frame), code.source, code.name, code.first_line))
        if code.arguments:
            self.bindings.look_at_arguments(call, frame)
        call.asked = asked = self.positions.asked
        if code.asked != asked:
            code.calls, code.asked = 1, asked
        elif self.ration.count_call(code):
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

    def reach(self, frame: types.FrameType, code: types.CodeType, line: int) -> bool:
        """A line is about to run: tell first what the last one did to names; return whether it is still of interest."""
        call = self.calls.get(id(frame))
        if call is None or call.code.object is not code:
            known = self.code_of(code)
            if known is None or known.quiet:
                return False
            call = self.enter(frame, known)
        if self._interrupted:
            self._settle()
        known = call.code
        last, call.todo = call.todo, (todo := known.names.get(line))
        if todo is QUIET:
            if last is not None and last is not QUIET:
                self._look(call, frame, last)
            return False
        if line in known.resuming and todo is not NAMELESS:
            self.bindings.catch_up(call, frame)
        if last is not None:
            self._tell(call, frame, last, line)
        elif (send := journal.emit) is not None:
            send((LINE, call.id, known.source, line))
        self._countdown -= 1
        if not self._countdown:
            self._sample(call, line)
        return True

    def _sample(self, call: Call, line: int) -> None:
        """Look up, once in some hundred lines, whether this is a long loop; let the recording keep pace."""
        if self._looked_at is not None:
            self._sample_among_ops(call)
            return
        lines = self._stride
        self._unflushed += lines
        if self._unflushed >= LINES_PER_FLUSH:
            self._unflushed = 0
            self.keep_pace()
        asked, self._asked = self._asked, self.positions.asked
        if self._asked and not asked:
            self.ration.begin()
        self._dear = self.ration.is_too_dear(lines, self._asked)
        self._countdown = self._stride = DEAR_STRIDE if self._dear and self.ration.wanted else STRIDE
        self._alone = self._alone + lines if asked == self._asked else 0
        if not self.ration.wanted:
            return
        if self._alone >= STRIDE:
            self._ration(call, line, lines)
        elif self._dear:  # whether the line itself runs an op is known when the next is reached
            self._looked_at, self._countdown = (call, line, self._asked), 1

    def _sample_among_ops(self, here: Call) -> None:
        """Count the line that was reached before this one, if neither it nor what it called ran an op."""
        self._countdown = self._stride - 1
        if self._looked_at is not None:
            (call, line, asked), self._looked_at = self._looked_at, None
            if call is here and asked == self.positions.asked and self.ration.wanted:
                self._ration(call, line, AMONG_OPS * DEAR_STRIDE)

    def _ration(self, call: Call, line: int, visits: int) -> None:
        if (rationed := self.ration.sample(call, line, visits)) is not None:
            self.bindings.let_go(call, call.code.plan.get(line))
            if rationed is QUIET:
                emit((LineRationed.code, call.code.source, line))

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
        if call.code.unfollowed and not call.code.optimized:
            self.bindings.catch_up(call, frame)
        if call is not self.main:
            del self.calls[id(frame)]
            if (send := journal.emit) is not None:
                send((LEFT, call.id))
            if call.asked != self.positions.asked:
                call.code.free_calls = 0
            elif self.ration.count_free_call(call.code, self._dear):
                self._hush(call.code)

    def unwind(self, frame: types.FrameType, error: BaseException, at: int | None = None) -> None:
        """A call ends by an exception; that it ended is told when someone handles it, so that a failure stays seen."""
        call = self.calls.get(id(frame))
        if call is None:
            return
        if self._raised != id(error):
            self.raised(frame, error, at)
        if call is not self.main:
            del self.calls[id(frame)]
            self._unwound[id(frame)] = call
            self._interrupted = True

    def raised(self, frame: types.FrameType, error: BaseException, at: int | None = None) -> None:
        """An exception appears in a user's frame; the frames it passes through afterwards add nothing.

        ``at`` is the instruction that raised it, where that is not the one that the frame is at.
        """
        if self._raised == id(error) or isinstance(error, (StopIteration, StopAsyncIteration, GeneratorExit)):
            return
        call = self.calls.get(id(frame))
        if call is None:
            return
        self._raised, self._interrupted = id(error), True
        at = frame.f_lasti if at is None else at
        self._raised_at = (id(error), id(frame), at)
        if call.todo is not None:
            self._look(call, frame, call.todo)
        if call.code.unfollowed:
            self.bindings.catch_up(call, frame)
        spans = call.code.spans or call.code.read_spans()
        emit((ExceptionRaised.code, call.id, call.code.source, *spans[at >> 1], *_described(error)))

    def _settle(self) -> None:
        """Someone goes on after an exception: the calls that it ended are gone now."""
        self._raised, self._raised_at, self._interrupted = 0, (0, 0, 0), False
        left, self._unwound = self._unwound, {}
        for call in left.values():
            emit((LEFT, call.id))

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
        emit((ENTERED, call.id, parent, code.source, code.name, entry.tb_lineno))
        self._look(call, frame, Names(tuple(filter(worth_showing, locals_of(frame))), (), ()))
        return call

    def refresh(self, frame: types.FrameType) -> None:
        """Look again at every name of a frame, after something was evaluated in it."""
        call = self.calls.get(id(frame))
        if call is not None:
            names = [name for name in locals_of(frame) if worth_showing(name)]
            self._look(call, frame, Names((*dict.fromkeys([*call.plain, *call.known, *names]),), (), ()))


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
