"""The two ways to watch Python run: ``sys.monitoring`` from 3.12 on, rewriting the user's code before.

Only the user's files pay: code of libraries is met once and then left alone (monitoring), or never (rewriting).
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from stridescope.engine.events import RecordingCut
from stridescope.engine.worker.bindings import emit
from stridescope.engine.worker.calls import Code
from stridescope.engine.worker.positions import is_long, line_starts
from stridescope.engine.worker.tracebacks import deepest, is_ours
from stridescope.engine.worker.tracer import Tracer

F = TypeVar("F", bound=Callable[..., Any])


class Watch(Protocol):
    """Something that feeds a tracer until it is stopped."""

    def start(self) -> None:
        """Begin to report."""

    def stop(self) -> None:
        """Report nothing more, in no thread."""

    def prepare(self, code: types.CodeType) -> types.CodeType:
        """Return the code that is to run in the place of a program's or module's."""


def watch(tracer: Tracer) -> Watch:
    """Return the best watch that this Python has."""
    if sys.version_info >= (3, 12):
        return MonitoringWatch(tracer)
    from stridescope.engine.worker.probing import RewriteWatch  # it knows the bytecode of 3.11 and 3.12 only

    return RewriteWatch(tracer)


def _safely(callback: F) -> F:
    """Let no fault of ours reach the script: watching ends instead. The frame watched is two calls further out."""

    @functools.wraps(callback)
    def call(self: Watch, *what: Any) -> Any:
        try:
            return callback(self, *what)
        except Exception as error:
            return give_up(self, error)

    return cast("F", call)


def give_up(watch: Watch, error: Exception) -> object:
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

        def prepare(self, code: types.CodeType) -> types.CodeType:
            """Leave the code as it is."""
            return code

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
                if known.quiet is known.watched:
                    self._adjust(known)
                if known.quiet:
                    return sys.monitoring.DISABLE
                self._tracer.enter(sys._getframe(1), known)
            except Exception as error:
                return give_up(self, error)
            return None

        def _adjust(self, known: Code) -> None:
            """Let the lines of a code be reported, or no longer, as its calls are recorded now."""
            if known.quiet is not known.watched:
                return
            known.watched = not known.quiet
            wanted = self.LOCAL
            if is_long(known.object):
                wanted, known.starts = self.LONG, known.starts or line_starts(known.object)
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
                return give_up(self, error)

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
                return give_up(self, error)

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

        def _return(self, code: types.CodeType, at: int, value: object) -> object:
            try:
                self._tracer.leave(sys._getframe(1))
            except Exception as error:
                return give_up(self, error)
            return None

        @_safely
        def _unwind(self, code: types.CodeType, _: int, error: BaseException) -> None:
            if self._tracer.code_of(code) is not None:
                self._tracer.unwind(sys._getframe(2), error)

        @_safely
        def _raise(self, code: types.CodeType, _: int, error: BaseException) -> None:
            if self._tracer.code_of(code) is not None:
                self._tracer.raised(sys._getframe(2), error)
