"""Runs a user's program in this process exactly as ``python PROGRAM`` would, with ``torch`` given by the engine."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable, Sequence

from stridescope.engine.worker import hook, tracebacks
from stridescope.engine.worker.program import LaunchError, Loaded, Program, load

__all__ = ["LaunchError", "Program", "run_program", "run_script"]

INTERRUPTED = -int(signal.SIGINT)  # as subprocess counts: ended by that signal


def run_script(path: str, argv: Sequence[str] = (), *, module: bool = False) -> int:
    """Run a script, a notebook or (with ``module``) a module, and return its exit status.

    The caller's process becomes the script's: ``__main__``, ``sys.argv``, ``sys.path`` and the working folder are as
    Python gives them. Threads and exit handlers of the script are left to the end of the process. A missing file
    raises :class:`LaunchError`; the script's own failures are printed as Python prints them.
    """
    return run_program(load(Program(path, tuple(argv), module)), argv, shown=path)


def run_program(
    loaded: Loaded,
    argv: Sequence[str],
    shown: str = "",
    failed: Callable[[BaseException], None] | None = None,
    prepare: Callable[[types.CodeType], types.CodeType] | None = None,
) -> int:
    """Run a program that was read, or what ``prepare`` makes of its code.

    ``failed`` is told of an exception that nobody handled, after it was printed.
    """
    hook.install()
    tracebacks.hide_ours()
    main = types.ModuleType("__main__")
    main.__dict__.update(loaded.names())
    sys.modules["__main__"] = main
    sys.argv = [loaded.filename if loaded.spec else shown or loaded.filename, *argv]
    _put_first(loaded.folder)
    try:
        _run(loaded, main, prepare or _as_it_is)
        return 0
    except SystemExit as error:
        return _asked_status(error)
    except BaseException as error:
        _report(error)
        if failed is not None:
            failed(error)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _as_it_is(code: types.CodeType) -> types.CodeType:
    return code


def _run(loaded: Loaded, main: types.ModuleType, prepare: Callable[[types.CodeType], types.CodeType]) -> None:
    """Execute the program's code, as deep a recursion as Python itself would give it."""
    code = prepare(loaded.compile())
    sys.setrecursionlimit(sys.getrecursionlimit() + _depth())
    exec(code, main.__dict__)


def _depth() -> int:
    frame: types.FrameType | None = sys._getframe(1)
    depth = 1 if sys.version_info < (3, 12) else 0  # there exec itself counts
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def _put_first(folder: str) -> None:
    """Put the program's folder where Python puts it, in the place of our own program's folder."""
    if not sys.flags.safe_path and sys.path:
        del sys.path[0]
    sys.path.insert(0, folder)


def _asked_status(error: SystemExit) -> int:
    """Return the status that ``sys.exit`` asked for; a text is printed and means 1."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    print(error.code, file=sys.stderr)
    return 1


def _report(error: BaseException) -> None:
    """Print an exception that nobody handled, by the script's own ``sys.excepthook`` if it has one."""
    tracebacks.strip(error)
    trace = error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    try:
        sys.stdout.flush()
        _printer()(type(error), error, trace)
    except BaseException as second:
        tracebacks.strip(second)
        print("Error in sys.excepthook:", file=sys.stderr)
        traceback.print_exception(second)
        print("\nOriginal exception was:", file=sys.stderr)
        traceback.print_exception(error)


def _printer() -> Callable[..., object]:
    """Return the hook that prints; Python's own reads the file, and a notebook's file does not hold its lines."""
    if sys.excepthook is sys.__excepthook__ and str(sys.modules["__main__"].__file__).endswith(".ipynb"):
        return traceback.print_exception
    return sys.excepthook


def leave(status: int) -> None:
    """End the process with a status as :func:`run_script` returns it; a negative one is a signal's number."""
    if status >= 0:
        sys.exit(status)
    threading._shutdown()  # type: ignore[attr-defined]  # what Python does at its end before it signals itself
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
