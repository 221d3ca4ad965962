"""The two ways to watch Python run: ``sys.monitoring`` from 3.12 on, ``sys.settrace`` before.

Only the user's files pay: code of libraries is met once and then left alone (monitoring), or costs one look per call
(settrace).
"""

from __future__ import annotations

import dis
import functools
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from stridescope.engine.events import RecordingCut
from stridescope.engine.worker.bindings import emit
from stridescope.engine.worker.calls import Code
from stridescope.engine.worker.positions import is_long
from stridescope.engine.worker.tracebacks import deepest, is_ours
from stridescope.engine.worker.tracer import Tracer

F = TypeVar("F", bound=Callable[..., Any])

YIELD_VALUE = dis.opmap["YIELD_VALUE"]


class Watch(Protocol):
    """Something that feeds a tracer until it is stopped."""

    def start(self) -> None:
        """Begin to report."""

    def stop(self) -> None:
        """Report nothing more, in no thread."""


def watch(tracer: Tracer) -> Watch:
    """Return the best watch that this Python has."""
    return MonitoringWatch(tracer) if sys.version_info >= (3, 12) else TraceWatch(tracer)


def _safely(callback: F) -> F:
    """Let no fault of ours reach the script: watching ends instead. The frame watched is two calls further out."""

    @functools.wraps(callback)
    def call(self: Watch, *what: Any) -> Any:
        try:
            return callback(self, *what)
        except Exception as error:
            return _give_up(self, error)

    return cast("F", call)


def _give_up(watch: Watch, error: Exception) -> object:
    """End watching for a fault of ours; what the script's signal handlers or its depth of calls raise is its own."""
    last = deepest(error.__traceback__)
    if isinstance(error, RecursionError) or last is None or not is_ours(last.tb_frame.f_code.co_filename):
        raise error
    watch.stop()
    emit((RecordingCut.code, f"lines and names are recorded no further: {type(error).__name__}: {error}"))
    return None


if sys.version_info >= (3, 12):
    events = sys.monitoring.events

    class MonitoringWatch:
        """Watches by ``sys.monitoring``: no cost outside the user's code objects."""

        LOCAL = events.LINE | events.PY_RETURN | events.JUMP
        LONG = events.INSTRUCTION | events.PY_RETURN | events.JUMP
        GLOBAL = events.PY_START | events.PY_UNWIND | events.RAISE

        def __init__(self, tracer: Tracer) -> None:
            self._tracer = tracer
            self._reach = tracer.reach
            self._tool = 0
            self._unwatched: list[Code] = []  # codes whose lines are not reported, though calls of them may run on

        def start(self) -> None:
            """Begin to report, as the first tool number that is neither a debugger's, coverage's nor a profiler's."""
            monitoring = sys.monitoring
            self._tool = next(number for number in (3, 4, 5, 2, 1, 0) if monitoring.get_tool(number) is None)
            monitoring.use_tool_id(self._tool, "stridescope")
            for event, callback in self._callbacks().items():
                monitoring.register_callback(self._tool, event, callback)
            monitoring.set_events(self._tool, self.GLOBAL)
            monitoring.restart_events()
            self._tracer.lifted = self._restart  # type: ignore[method-assign]

        def stop(self) -> None:
            """Report nothing more."""
            if sys.monitoring.get_tool(self._tool) is None:
                return
            sys.monitoring.set_events(self._tool, 0)
            for event in self._callbacks():
                sys.monitoring.register_callback(self._tool, event, None)
            sys.monitoring.free_tool_id(self._tool)

        def _callbacks(self) -> dict[int, Callable[..., Any]]:
            return {
                events.PY_START: self._start,
                events.LINE: self._line,
                events.INSTRUCTION: self._instruction,
                events.JUMP: self._jump,
                events.PY_RETURN: self._return,
                events.PY_UNWIND: self._unwind,
                events.RAISE: self._raise,
            }

        def _start(self, code: types.CodeType, _: int) -> object:
            try:
                known = self._tracer.code_of(code)
                if known is None:
                    return sys.monitoring.DISABLE
                self._adjust(known)
                if known.quiet:
                    return sys.monitoring.DISABLE
                self._tracer.enter(sys._getframe(1), known)
            except Exception as error:
                return _give_up(self, error)
            return None

        def _adjust(self, known: Code) -> None:
            """Let the lines of a code be reported, or no longer, as its calls are recorded now."""
            if known.quiet is not known.watched:
                return
            known.watched = not known.quiet
            wanted = self.LONG if is_long(known.object) else self.LOCAL
            sys.monitoring.set_local_events(self._tool, known.object, wanted if known.watched else 0)
            if known.quiet:
                self._unwatched.append(known)

        def _restart(self) -> None:
            """Report every line again, in calls that run already too."""
            for known in self._unwatched:
                self._adjust(known)
            self._unwatched = [known for known in self._unwatched if known.quiet]
            sys.monitoring.restart_events()

        def _line(self, code: types.CodeType, line: int) -> object:
            try:
                return None if self._reach(sys._getframe(1), code, line) else sys.monitoring.DISABLE
            except Exception as error:
                return _give_up(self, error)

        def _instruction(self, code: types.CodeType, at: int) -> object:
            """Report a line of a long code, as :meth:`_line` does: where an instruction begins one, and it is another.

            For each line event Python looks for the line from the beginning of the code on, once that is more than
            126 lines: a loop there would take a hundred times its own time.
            """
            try:
                known = self._tracer.code_of(code)
                if known is None or (line := known.starts.get(at, 0)) == 0:
                    return sys.monitoring.DISABLE
                frame = sys._getframe(1)
                call = self._tracer.calls.get(id(frame))
                if call is not None:
                    if call.line == line and not known.silent:
                        return None
                    call.line = line
                return None if self._reach(frame, code, line) else sys.monitoring.DISABLE
            except Exception as error:
                return _give_up(self, error)

        @_safely
        def _jump(self, code: types.CodeType, start: int, end: int) -> object:
            """Report a loop that stands in one line: the line is reached anew, though Python does not say so."""
            known = self._tracer.code_of(code)
            if known is None or end > start:
                return sys.monitoring.DISABLE
            spans = known.spans or known.read_spans()
            if spans[start >> 1][0] != (line := spans[end >> 1][0]):
                return sys.monitoring.DISABLE
            return None if self._reach(sys._getframe(2), code, line) else sys.monitoring.DISABLE

        def _return(self, *_: object) -> object:
            try:
                self._tracer.leave(sys._getframe(1))
            except Exception as error:
                return _give_up(self, error)
            return None

        @_safely
        def _unwind(self, code: types.CodeType, _: int, error: BaseException) -> None:
            if self._tracer.code_of(code) is not None:
                self._tracer.unwind(sys._getframe(2), error)

        @_safely
        def _raise(self, code: types.CodeType, _: int, error: BaseException) -> None:
            if self._tracer.code_of(code) is not None:
                self._tracer.raised(sys._getframe(2), error)


class TraceWatch:
    """Watches by ``sys.settrace``, in every thread that starts from now on.

    Python 3.11 goes on calling for every line of a call that is traced, rationed or not. Measured there, in times of
    the plain loop of tests/benchmarks/tracing.py: 5.8 with a callback that does nothing, 10 to 11 with the one below
    in a loop all of whose lines are rationed, 2.3 with ``f_trace_lines`` off (but then nothing says that the loop is
    left), 2.4 with ``if wanted[line]: tell(line)`` compiled in before each statement, 3.3 with a bare call there. A
    call of a small function takes 5 times its own time as soon as anything is traced at all. So it would be the
    rewriting that keeps a loop below 3.2; it is not done, and a recording on 3.11 costs more than one on 3.12.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer, self._reach = tracer, tracer.reach
        self._failing: dict[int, BaseException] = {}
        self._locals: dict[int, Callable[..., Any]] = {}  # what is called for every line, by id(code)

    def start(self) -> None:
        """Begin to report."""
        threading.settrace(self._call)
        sys.settrace(self._call)
        self._tracer.lifted = self._rejoin  # type: ignore[method-assign]

    def _rejoin(self) -> None:
        """Report the lines of calls, too, that run already and were not recorded when they began."""
        for frame in sys._current_frames().values():
            at: types.FrameType | None = frame
            while at is not None:
                code = self._tracer.code_of(at.f_code)
                if code is not None and not code.quiet and at.f_trace is None:
                    at.f_trace = self._locals.get(id(at.f_code)) or self._local(code)
                at = at.f_back

    def stop(self) -> None:
        """Report nothing more."""
        sys.settrace(None)
        threading.settrace(None)

    def _call(self, frame: types.FrameType, event: str, _: object) -> Callable[..., Any] | None:
        try:
            code = self._tracer.code_of(frame.f_code)
            if code is None or code.quiet or event != "call":
                return None
            known = self._tracer.calls.get(id(frame))
            if known is None or known.code is not code:  # else a generator goes on
                self._tracer.enter(frame, code)
        except Exception as error:
            _give_up(self, error)
            return None
        return self._locals.get(id(frame.f_code)) or self._local(code)

    def _local(self, code: Code) -> Callable[..., Any]:
        """Return what Python is to call for each line of the code, and at the end of a call."""
        silent, tell = code.silent, self._line_or_end

        def alert(frame: types.FrameType, event: str, value: Any) -> Callable[..., Any]:
            return drowsy if tell(frame, event, value) else alert

        def drowsy(frame: types.FrameType, event: str, value: Any) -> Callable[..., Any] | None:
            """In a rationed loop: most lines are of no interest, and Python goes on to call this."""
            return None if event == "line" and frame.f_lineno in silent else alert(frame, event, value)

        self._locals[id(code.object)] = alert
        return alert

    def _line_or_end(self, frame: types.FrameType, event: str, value: Any) -> bool:
        """Tell the tracer; return whether it wants to hear no more of such lines."""
        try:
            if event == "line":
                if self._failing:
                    self._failing.pop(id(frame), None)
                return not self._reach(frame, frame.f_code, frame.f_lineno)
            if event == "exception":
                self._failing[id(frame)] = value[1]
                self._tracer.raised(frame, value[1])
            elif event == "return":
                self._ended(frame, value)
        except Exception as error:
            _give_up(self, error)
        return False

    def _ended(self, frame: types.FrameType, value: object) -> None:
        """Tell the three ways apart in which a frame gives up control: by an exception, a yield or a return."""
        error = self._failing.pop(id(frame), None)
        if error is not None and value is None:
            self._tracer.unwind(frame, error)
        elif not _yields(frame):
            self._tracer.leave(frame)


def _yields(frame: types.FrameType) -> bool:
    """Say whether the frame is suspended at a ``yield`` or ``await``."""
    code = frame.f_code
    generators = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
    return bool(code.co_flags & generators) and code.co_code[frame.f_lasti] == YIELD_VALUE
