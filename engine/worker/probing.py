"""Watching by rewriting, for Python before 3.12: the user's code is given probes as it is compiled or imported."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.machinery
import types
from collections.abc import Callable
from typing import Any

from stridescope.engine.worker.hook import AFTERTHOUGHTS
from stridescope.engine.worker.probes import Body, Probe
from stridescope.engine.worker.rewriting import rewritten
from stridescope.engine.worker.tracer import Tracer
from stridescope.engine.worker.watch import give_up


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
        self._originals: dict[int, tuple[types.CodeType, types.CodeType]] = {}  # the other way round
        self._undo = contextlib.ExitStack()
        self._stopped = False

    def start(self) -> None:
        """Begin to report."""
        for loader in self.LOADERS:
            self._undo.callback(_replace(loader, "get_code", self._importing(loader.get_code)))
        AFTERTHOUGHTS["numba.core.bytecode"], AFTERTHOUGHTS["runpy"] = self._show_originals, self._prepare_paths
        if self.tracer.belongs.steps_into:
            self._renew_functions()
        self.tracer.lifted = self._restart  # type: ignore[method-assign]
        self.tracer.compiled = self._original  # type: ignore[method-assign]

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
        give_up(self, error)

    def hush(self, probe: Probe) -> None:
        """Call a probe no more until every line is recorded again."""
        probe.hush()
        self._hushed.append(probe)

    def _restart(self) -> None:
        """Report every line again, in calls that run already too."""
        if self._stopped:
            return
        quiet = []
        while self._hushed:  # other threads go on adding to it
            probe = self._hushed.pop()
            known = probe.body.known
            if known is not None and known.quiet:
                quiet.append(probe)
            else:
                probe.wake()
        self._hushed += quiet

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
        self._rewritten[id(code)], self._originals[id(new)] = (code, new), (new, code)
        return new

    def _prepare_paths(self, runpy: types.ModuleType) -> None:
        """Watch what the script runs by its path."""

        def compile_prepared(source: Any, path: str, mode: str) -> types.CodeType:
            code: types.CodeType = compile(source, path, mode, dont_inherit=True)
            return self.prepare(code)

        runpy.compile = compile_prepared  # type: ignore[attr-defined]

    def _original(self, code: types.CodeType) -> types.CodeType:
        """Return what the compiler made, for a code with probes."""
        return self._originals.get(id(code), (code, code))[1]

    def _show_originals(self, numba: types.ModuleType) -> None:
        """Let numba compile a function from the code that its file says: it knows no calls of ours."""
        get: Callable[[object], Any] = numba.get_code_object

        def get_code_object(function: object) -> Any:
            code = get(function)
            return self._original(code) if isinstance(code, types.CodeType) else code

        numba.get_code_object = get_code_object  # type: ignore[attr-defined]

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
