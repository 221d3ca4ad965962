"""The console: evaluates what a person types in the frame where the script waits."""

from __future__ import annotations

import ast
import contextlib
import ctypes
import re
import rlcompleter
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any

from stridescope.engine.events import FrameEntered, FrameLeft, journal
from stridescope.engine.worker import tracebacks
from stridescope.engine.worker.bindings import emit
from stridescope.engine.worker.frame_locals import locals_of, write_back
from stridescope.engine.worker.inspection import parts_of
from stridescope.engine.worker.positions import Where, span_at
from stridescope.engine.worker.protocol import Inspect, Inspected, Part
from stridescope.engine.worker.tracer import Tracer

CONSOLE = "<console>"  # the file name of what is typed
MOST = 20_000  # characters of an answer


class Console:
    """Evaluates and executes in a user's frame; what it does is recorded as done by ``<console>``."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._thread = 0  # the thread that evaluates now
        self.typed = ""  # everything typed so far: the source text of ``<console>``

    def evaluate(self, frame: types.FrameType | None, text: str) -> tuple[str, bool]:
        """Return what was printed and the value's text, and True; or with the error's text False."""
        heard: list[str] = []
        with contextlib.redirect_stdout(_Overheard(sys.stdout, heard)):
            words, ok = self._answer(lambda: self._recorded(frame, text.strip()))
        answer = _cut("".join(heard)) + words, ok
        if frame is not None:
            write_back(frame)
            self._tracer.refresh(frame)
        return answer

    def watch(self, frame: types.FrameType | None, text: str) -> tuple[str, bool]:
        """Return the text of an expression's value, as :meth:`evaluate` does, and record nothing."""
        with journal.muted():
            return self._answer(lambda: eval(text.strip(), *_names_for_reading(frame)))

    def _answer(self, run: Callable[[], object]) -> tuple[str, bool]:
        self._thread = threading.get_ident()
        try:
            value = run()
            answer = "" if value is None else repr(value)
        except BaseException as error:
            tracebacks.strip(error)
            return "".join(traceback.format_exception(error))[-MOST:].rstrip("\n"), False
        finally:
            self._thread = 0
        return _cut(answer), True

    def _recorded(self, frame: types.FrameType | None, text: str) -> object:
        """Run a text; its ops are recorded as those of a frame of its own, in a source of its own."""
        number, source = self._tracer.new_frame(), self._tracer.source_of(CONSOLE)
        line = self.typed.count("\n")
        self.typed += text + "\n"
        emit((FrameEntered.code, number, 0, source, CONSOLE, line + 1))
        outside, journal.where = journal.where, lambda: _where(number, source)
        try:
            return _run(text, line, *_namespaces(frame))
        finally:
            journal.where = outside
            emit((FrameLeft.code, number))

    def inspect(self, frame: types.FrameType | None, wanted: Inspect) -> Inspected:
        """Return what is inside a value of a frame, one level deep; a name that is not there has nothing inside."""
        with journal.muted():
            try:
                value = eval(wanted.expression, *_names_for_reading(frame))
                found, total = parts_of(value, wanted.path, wanted.first, wanted.count)
            except Exception as error:
                found, total = (Part("", f"{type(error).__name__}: {error}"),), 1
        return Inspected(wanted.number, found, total)

    def interrupt(self) -> None:
        """Break off what is being evaluated."""
        if thread := self._thread:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))

    def complete(self, frame: types.FrameType | None, text: str) -> tuple[str, ...]:
        """Return the names that the last word of a text could become."""
        space, values = _names_for_reading(frame)
        found = re.search(r"[\w.]*$", text)
        completer = rlcompleter.Completer({**space, **values})
        word = found.group() if found else ""
        names: list[str] = []
        while len(names) < 200 and (name := completer.complete(word, len(names))) is not None:
            names.append(name)
        return tuple(dict.fromkeys(name.rstrip("( ") for name in names))

    def is_met(self, frame: types.FrameType | None, condition: Any) -> tuple[bool, str]:
        """Say whether a breakpoint's condition is true; one that fails stops too, with what went wrong."""
        with journal.muted():
            try:
                return bool(eval(condition, *_names_for_reading(frame))), ""
            except Exception as error:
                return True, f"the condition fails: {type(error).__name__}: {error}"


class _Overheard:
    """A stream whose writes are also kept, for the console to show; all else is the stream's own."""

    def __init__(self, stream: Any, heard: list[str]) -> None:
        self._stream, self._heard = stream, heard

    def write(self, text: str) -> int:
        """Write a text and keep it."""
        self._heard.append(text)
        written: int = self._stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _cut(text: str) -> str:
    return text if len(text) <= MOST else text[:MOST] + "…"


def _namespaces(frame: types.FrameType | None) -> tuple[dict[str, Any], Any]:
    if frame is None:
        space = vars(sys.modules["__main__"])
        return space, space
    return frame.f_globals, frame.f_locals


def _names_for_reading(frame: types.FrameType | None) -> tuple[dict[str, Any], Any]:
    return _namespaces(None) if frame is None else (frame.f_globals, locals_of(frame))


def _run(text: str, line: int, space: dict[str, Any], values: Any) -> object:
    """Execute statements, and return the value of the expression that ends them, or None.

    They are numbered as lines of everything typed so far.
    """
    tree = ast.parse("\n" * line + text, CONSOLE)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, CONSOLE, "exec", dont_inherit=True), space, values)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), CONSOLE, "exec", dont_inherit=True), space, values)
    return eval(compile(ast.Expression(last.value), CONSOLE, "eval", dont_inherit=True), space, values)


def _where(number: int, source: int) -> Where:
    """Return which expression of the console runs."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != CONSOLE:
        frame = frame.f_back
    return (number, source, *(span_at(frame) if frame is not None else (0, 0, 0, 0)))
