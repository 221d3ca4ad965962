"""A recorded run: the recording, the tracer and the script, from the first line to the last exit handler."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import dataclasses
import importlib
import os
import platform
import sys
from collections.abc import Callable, Sequence

from stridescope.engine.devices import registry
from stridescope.engine.events import ExceptionRaised, RecordingCut, ScriptEnded, journal
from stridescope.engine.recording.writer import Writer
from stridescope.engine.worker import crash, streams
from stridescope.engine.worker.belongs import Belongs
from stridescope.engine.worker.bindings import emit
from stridescope.engine.worker.console import CONSOLE
from stridescope.engine.worker.hook import GIVEN, ROOM
from stridescope.engine.worker.launch import run_program
from stridescope.engine.worker.program import Loaded, Program, load
from stridescope.engine.worker.tracer import Tracer
from stridescope.engine.worker.watch import watch

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
KEPT_VALUES = 1 << 16  # bytes of the largest storage whose values are kept at every version


def record_script(
    path: str,
    argv: Sequence[str],
    recording: str,
    *,
    module: bool = False,
    keep_values: int = KEPT_VALUES,
    every_line: bool = False,
    step_into: Sequence[str] = (),
) -> int:
    """Run a program as :func:`~stridescope.engine.worker.launch.run_script` does, recorded into a file.

    ``every_line`` records each round of the longest loop, at its price (see :mod:`.rationing`); ``step_into`` names
    packages whose functions are recorded line by line as the user's are. The recording is
    closed when the process ends, after the script's own threads and exit handlers.
    """
    program = Program(path, tuple(argv), module)
    run = RecordedRun(program, load(program), recording, Detail(keep_values, every_line, tuple(step_into)))
    streams.record_output()
    return run.run()


@dataclasses.dataclass(frozen=True)
class Detail:
    """How closely to record: values of storages up to some bytes, every line or not, which packages like the user's."""

    keep_values: int = KEPT_VALUES
    every_line: bool = False
    step_into: tuple[str, ...] = ()


class RecordedRun:
    """One run of a program with its recording."""

    def __init__(self, program: Program, loaded: Loaded, recording: str, detail: Detail) -> None:
        self.program, self.loaded, self.detail = program, loaded, detail
        self.writer = Writer(recording, _facts(program, loaded))
        self.tracer = Tracer(Belongs(loaded.filename, loaded.folder, detail.step_into), detail.every_line)
        self.tracer.keep_pace = self.writer.flush  # type: ignore[method-assign,assignment]
        self.ended: Callable[[int], None] | None = None  # told of the exit status, after everything is written
        self._watch = watch(self.tracer)
        self._status, self._process, self._closed = 0, os.getpid(), False
        self._failed: Callable[[BaseException], None] | None = None
        self._let_crash: Callable[[], None] = lambda: None

    def run(
        self,
        ready: Callable[[], None] | None = None,
        failed: Callable[[BaseException], None] | None = None,
    ) -> int:
        """Run the program to its end and return its status; ``ready`` is called before its first line."""
        self._failed = failed
        _keep_freed_memory()
        self.writer.attach(journal, self.detail.keep_values)
        self._let_crash = crash.save_first(self.writer.flush)
        journal.where = self.tracer.positions.where
        if self.loaded.text:
            self.writer.add_source(self.tracer.source_of(self.loaded.filename), self.loaded.filename, self.loaded.text)
        if ready is not None:
            ready()
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._watch.stop)
        self._close_before_exit()
        for name in set(GIVEN).intersection(self.detail.step_into):
            importlib.import_module(ROOM + name)  # importing it is nothing to step into
        self._watch.start()
        self._status = run_program(
            self.loaded, self.program.argv, self.program.path, self._note_failure, self._watch.prepare
        )
        return self._status

    def _note_failure(self, error: BaseException) -> None:
        """Make sure that the recording ends with what stopped the script, and let others look at it."""
        if isinstance(error, SyntaxError) and self.tracer.main is None:
            source = self.tracer.source_of(self.loaded.filename)
            line, column = error.lineno or 1, max((error.offset or 1) - 1, 0)
            message = error.msg if isinstance(error.msg, str) else str(error)
            emit((ExceptionRaised.code, 0, source, line, column, line, column + 1, type(error).__name__, message))
        self.tracer.tell_failure(error)
        if self._failed is not None:
            self._failed(error)

    def keep_console(self, text: str) -> None:
        """Keep what was typed in the console as the text of its source."""
        self.writer.add_source(self.tracer.source_of(CONSOLE), CONSOLE, text)

    def cut(self, reason: str, status: int) -> None:
        """End the recording in the midst of the run, from any thread, and say why.

        The script's streams are left as they are: it may be held while it writes, and flushing would wait for it.
        """
        emit((RecordingCut.code, reason))
        self._status = status
        self._close()

    def close(self) -> None:
        """End the recording; in a forked child there is nothing to end."""
        if os.getpid() == self._process:
            _flush_streams()
            self._close()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._let_crash()
        self._watch.stop()
        emit((ScriptEnded.code, self._status))
        self.writer.flush()
        if self.ended is not None:  # told before the recording is tidied up, which takes its time
            self.ended(self._status)
        self.writer.close(self._status)
        if self.writer.failure:
            print(f"stridescope: {self.writer.failure}", file=sys.stderr)

    def _close_before_exit(self) -> None:
        """``os._exit`` ends a process on the spot: the recording is closed before it."""
        leave = os._exit

        def _exit(status: int) -> None:
            self._status = status
            self.close()
            leave(status)

        os._exit = _exit  # type: ignore[assignment]


def _keep_freed_memory() -> None:
    """Let glibc keep what is freed for what comes next, up to some tens of megabytes.

    Values wait for the recording's thread and are freed together: glibc would give them back to the system each time,
    and the next ones would be paid for page by page, a tenth of a training step's time. These are the bounds that it
    comes to by itself once a block of 32 MiB was freed. Elsewhere nothing is done.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError, ValueError):
        if os.confstr("CS_GNU_LIBC_VERSION"):
            set_bound = ctypes.CDLL(None).mallopt
            set_bound(_MMAP_THRESHOLD, 32 << 20)
            set_bound(_TRIM_THRESHOLD, 64 << 20)


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the script may have put anything there, and closed it
            stream.flush()


def _facts(program: Program, loaded: Loaded) -> dict[str, object]:
    return {
        "script": loaded.filename,
        "argv": list(program.argv),
        "python": platform.python_version(),
        "folder": os.getcwd(),
        "device": registry.describe(),
    }
