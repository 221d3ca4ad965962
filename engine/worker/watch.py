"""The two ways to watch Python run: ``sys.monitoring`` from 3.12 on, rewriting the user's code before.

Only the user's files pay: code of libraries is met once and then left alone (monitoring), or never (rewriting).
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.machinery
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from stridescope.engine.events import RecordingCut
from stridescope.engine.worker.bindings import emit
from stridescope.engine.worker.calls import Code
from stridescope.engine.worker.positions import is_long
from stridescope.engine.worker.probes import Body, Probe
from stridescope.engine.worker.rewriting import rewritten
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
    return MonitoringWatch(tracer) if sys.version_info >= (3, 12) else RewriteWatch(tracer)


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


class RewriteWatch:
    """Watches by probes in the user's code objects, which are put in as these are compiled or imported.

    There is no hook per thread, and none that Python would call for code of libraries; their functions that are there
    already get other code where they are to be stepped into. Measured with tests/benchmarks/tracing.py on 3.11, in
    times of the plain script: 1.8 to 3 where lines run no op, with a hushed line at 4 ns; ``sys.settrace`` took 5 to
    28, since it goes on calling for every line of a call that is traced, rationed or not.

    What there is no way to do so: code that the script itself compiles is not watched, nor is a copy of its code that
    it marshals or pickles; while it traces or profiles itself, nothing is told in that thread, so that it sees its own
    calls only. What it can see: a code object's bytes, last constants, lines without columns and stack size are not
    those that the compiler gave, so what reads or replaces bytes of code finds others.
    """

    LOADERS = (importlib.machinery.SourceFileLoader, importlib.machinery.SourcelessFileLoader)

    def __init__(self, tracer: Tracer) -> None:
        self.tracer, self.reach = tracer, tracer.reach
        self.busy: set[int] = set()  # threads that are telling something now
        # By thread: the frame where an exception goes on that was told, and that exception, as their ids.
        self.reraising: dict[int, tuple[int, int]] = {}
        self._bodies: list[Body] = []
        self._hushed: list[Probe] = []
        self._rewritten: dict[int, tuple[types.CodeType, types.CodeType]] = {}  # by id(code), with that code
        self._undo = contextlib.ExitStack()
        self._stopped = False

    def start(self) -> None:
        """Begin to report."""
        for loader in self.LOADERS:
            self._undo.callback(_replace(loader, "get_code", self._importing(loader.get_code)))
        if self.tracer.belongs.steps_into:
            self._renew_functions()
        self.tracer.lifted = self._restart  # type: ignore[method-assign]

    def stop(self) -> None:
        """Report nothing more."""
        self._stopped = True
        self._undo.close()
        for body in self._bodies:
            for probe in body.probes:
                probe.hush()

    def prepare(self, code: types.CodeType) -> types.CodeType:
        """Return the code that is to run in the place of another."""
        if self._stopped or not self.tracer.belongs.concerns(code.co_filename):
            return code
        try:
            return self._prepared(code)
        except Exception as error:
            self.give_up(error)
            return code

    def give_up(self, error: Exception) -> None:
        """End watching for a fault of ours."""
        _give_up(self, error)

    def hush(self, probe: Probe) -> None:
        """Call a probe no more until every line is recorded again."""
        probe.hush()
        self._hushed.append(probe)

    def _restart(self) -> None:
        """Report every line again, in calls that run already too."""
        if self._stopped:
            return
        hushed, self._hushed = self._hushed, []
        for probe in hushed:
            known = probe.body.known
            if known is not None and known.quiet:
                self._hushed.append(probe)
            else:
                probe.wake()

    def _prepared(self, code: types.CodeType) -> types.CodeType:
        if (known := self._rewritten.get(id(code))) is not None:
            return known[1]
        inner = [self._prepared(each) for each in code.co_consts if isinstance(each, types.CodeType)]
        if self.tracer.belongs(code):
            body = Body(self)
            new = rewritten(code, body, inner)
            self._bodies.append(body)
        else:
            codes = iter(inner)
            consts = (next(codes) if isinstance(each, types.CodeType) else each for each in code.co_consts)
            new = code.replace(co_consts=tuple(consts))
        self._rewritten[id(code)] = code, new
        return new

    def _importing(self, get_code: Callable[..., types.CodeType | None]) -> Callable[..., types.CodeType | None]:
        """Return what reads a module's code as ``get_code`` does; tracebacks leave it out as Python's own."""

        def prepared(loader: Any, name: str) -> types.CodeType | None:
            code = get_code(loader, name)
            return None if code is None else self.prepare(code)

        prepared.__code__ = prepared.__code__.replace(co_filename=get_code.__code__.co_filename)
        return prepared

    def _renew_functions(self) -> None:
        """Put probes into functions that are there already: of libraries to be stepped into."""
        for function in gc.get_objects():
            if type(function) is types.FunctionType and self.tracer.belongs(function.__code__):
                function.__code__ = self.prepare(function.__code__)


def _replace(owner: type, name: str, new: object) -> Callable[[], None]:
    """Give a class another attribute; return what undoes that."""
    own = vars(owner).get(name)
    setattr(owner, name, new)
    return functools.partial(setattr, owner, name, own) if own is not None else functools.partial(delattr, owner, name)
