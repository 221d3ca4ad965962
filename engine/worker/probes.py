"""What rewritten code objects call: constants in them that tell a watch what Python is about to do."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import types
from _thread import get_ident
from typing import TYPE_CHECKING, Any

from stridescope.engine.worker.calls import Code
from stridescope.engine.worker.tracebacks import entries

if TYPE_CHECKING:
    from stridescope.engine.worker.probing import RewriteWatch


class Constant(ctypes.c_ubyte):
    """A constant of a code object that is false here, and true where code is taken that the script sends elsewhere.

    A number of ctypes is a buffer, which marshals as bytes; those, and what it pickles as, are true whatever it was.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return bytes, (b"\0",)


class Tracing(Constant):
    """Returns the function that traces this thread, None if there is none; what profiles does not see it called."""

    __slots__ = ()
    __call__ = sys.gettrace


class Profiling(Constant):
    """Returns what profiles this thread, None if nothing does; what profiles does not see it called."""

    __slots__ = ()
    __call__ = sys.getprofile


class Probe(bytearray):
    """A constant that is called while it is true, and hushed while it is false: bytes are what Python tests fastest."""

    __slots__ = ("body", "line")
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__
    body: Body
    line: int

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return bytes, ()

    def wake(self) -> None:
        """Be called from now on."""
        self[:] = b"1"

    def hush(self) -> None:
        """Be called no more."""
        self.clear()

    def __call__(self, *what: Any) -> None:
        """Tell of it, unless this happens while something is told in this thread already."""
        watch = self.body.watch
        busy, thread = watch.busy, get_ident()
        if thread in busy:
            return
        try:
            busy.add(thread)
            self.tell(sys._getframe(1), *what)
        except Exception as error:
            watch.give_up(error)
        finally:
            busy.discard(thread)

    def tell(self, frame: types.FrameType, *what: Any) -> None:
        """Tell the tracer."""
        raise NotImplementedError


class AtLine(Probe):
    """A line is about to run."""

    __slots__ = ()

    def __call__(self) -> None:
        """Tell the tracer, and be hushed when it wants to hear no more of this line: as others do, but faster."""
        watch = self.body.watch
        if (thread := get_ident()) in (busy := watch.busy):
            return
        try:
            busy.add(thread)
            frame = sys._getframe(1)
            if not watch.reach(frame, frame.f_code, self.line):
                watch.hush(self)
        except Exception as error:
            watch.give_up(error)
        finally:
            busy.discard(thread)


class AtBegin(Probe):
    """A call begins."""

    __slots__ = ()

    def tell(self, frame: types.FrameType) -> None:
        """Tell the tracer; a function whose calls are not recorded is hushed as a whole."""
        body, tracer = self.body, self.body.watch.tracer
        known = body.known = tracer.code_of(frame.f_code)
        if known is None or known.quiet:
            for probe in body.probes:
                body.watch.hush(probe)
            return
        try:
            tracer.enter(frame, known)
        except BaseException as error:  # a signal's, or Python's stack is full: the call ends before its first line
            with contextlib.suppress(RecursionError):
                tracer.unwind(frame, error)
            tracer.calls.pop(id(frame), None)
            raise


class AtEnd(Probe):
    """A call is about to return."""

    __slots__ = ()

    def tell(self, frame: types.FrameType) -> None:
        """Tell the tracer."""
        self.body.watch.tracer.leave(frame)


class AtError(Probe):
    """An exception has come to a handler, an end of a ``with`` or a ``finally``."""

    __slots__ = ()

    def tell(self, frame: types.FrameType, error: BaseException, unit: int | None) -> None:
        """Tell the tracer, unless the exception goes on; at the end of Python's stack there may be no room for it."""
        watch, at = self.body.watch, _raised_at(frame, error, unit)
        if watch.reraising.pop(get_ident(), None) != (id(frame), id(error)):
            with contextlib.suppress(RecursionError):
                watch.tracer.raised(frame, error, at)


class AtReraising(Probe):
    """An exception goes on to the next handler of its code, after a ``finally`` or where no ``except`` took it."""

    __slots__ = ()

    def tell(self, frame: types.FrameType, error: BaseException | None) -> None:
        """Let what it comes to next take note that it is not new; a bare ``raise`` names none."""
        error = sys.exc_info()[1] if error is None else error
        self.body.watch.reraising[get_ident()] = id(frame), id(error)


class AtUnwinding(Probe):
    """A call ends by an exception."""

    __slots__ = ()

    def tell(self, frame: types.FrameType, error: BaseException, unit: int | None) -> None:
        """Tell the tracer; at the end of Python's stack there may be no room for it."""
        with contextlib.suppress(RecursionError):
            self.body.watch.tracer.unwind(frame, error, _raised_at(frame, error, unit))


def _raised_at(frame: types.FrameType, error: BaseException, unit: int | None) -> int:
    """Return the instruction of a frame where an exception appeared, given the interpreter's note."""
    if unit is not None:
        return 2 * unit
    return next((entry.tb_lasti for entry in entries(error.__traceback__) if entry.tb_frame is frame), frame.f_lasti)


class Body:
    """The probes of one code object."""

    here, foreign = Constant(), (Tracing(), Profiling())

    def __init__(self, watch: RewriteWatch) -> None:
        self.watch = watch
        self.known: Code | None = None  # what the tracer knows of it, once it was called
        self.probes: list[Probe] = []

    def at_line(self, line: int) -> Probe:
        """Return what is called before a line."""
        return self._add(AtLine(), line)

    def at_begin(self) -> Probe:
        """Return what is called as a call begins."""
        return self._add(AtBegin())

    def at_end(self) -> Probe:
        """Return what is called before a call returns."""
        return self._add(AtEnd())

    def at_error(self) -> Probe:
        """Return what is called when an exception comes to where it may be handled."""
        return self._add(AtError())

    def at_reraising(self) -> Probe:
        """Return what is called before an exception goes on to the next handler."""
        return self._add(AtReraising())

    def at_unwinding(self) -> Probe:
        """Return what is called when an exception ends a call."""
        return self._add(AtUnwinding())

    def _add(self, probe: Probe, line: int = 0) -> Probe:
        probe.body, probe.line = self, line
        probe.wake()
        self.probes.append(probe)
        return probe
