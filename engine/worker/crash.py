"""What is done when the script's process crashes in native code: the recording takes in what was told until then.

A recording is written some hundredths of a second after its events. A crash leaves no time for that, unless its signal
is caught first: here, on Linux with 64 bits, by a handler that the C library calls with the process as the crash left
it. It saves, and lets the crash take its course: Python's faulthandler, if that is on, and the end of the process with
the status it would have had.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from stridescope.engine.worker.tracebacks import is_ours

FATAL = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT")  # those of faulthandler
PATIENCE = 3  # seconds; saving waits for ever where the crash left a lock held
SIGINFO, ONSTACK, NODEFER = 4, 0x08000000, 0x40000000  # flags of sigaction(2), include/uapi/asm-generic/signal.h
STACK = 1 << 20  # bytes: the one of faulthandler is too small for Python to run on

Undo = Callable[[], None]


class Action(ctypes.Structure):
    """``struct sigaction`` of the C libraries of Linux, with 64 bits."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class Stack(ctypes.Structure):
    """``stack_t`` of sigaltstack(2)."""

    _fields_ = (("base", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.POINTER(ctypes.c_int * 3), ctypes.c_void_p)


def save_first(save: Callable[[], object]) -> Undo:
    """Call ``save`` when a crash is about to end this process, none of its children; return what undoes that.

    It does nothing where the C library's structures are not known.
    """
    known = sys.platform == "linux" and ctypes.sizeof(ctypes.c_void_p) == 8
    return _Guard(save).remove if known else lambda: None


class _Guard:
    """The handlers of all fatal signals, and what stood there before."""

    def __init__(self, save: Callable[[], object]) -> None:
        self._save, self._process = save, os.getpid()
        self._library: Any = ctypes.CDLL(None)
        self._handler = Handler(self._crashed)
        self._before = {number: Action() for number in map(signal.Signals.__getitem__, FATAL)}
        # Of another stack Python 3.14 thinks that it overflows; so there a real overflow is not saved.
        own_stack = sys.version_info < (3, 14)
        if own_stack:
            place = ctypes.addressof(ctypes.c_char.from_buffer(_stack()))
            self._library.sigaltstack(ctypes.byref(Stack(place, 0, STACK)), None)
        flags = SIGINFO | NODEFER | (ONSTACK if own_stack else 0)
        ours = Action(ctypes.cast(self._handler, ctypes.c_void_p), flags=flags)
        for number, before in self._before.items():
            self._library.sigaction(number, ctypes.byref(ours), ctypes.byref(before))

    def remove(self) -> None:
        """Put back what was there."""
        for number, before in self._before.items():
            self._library.sigaction(number, ctypes.byref(before), None)

    def _crashed(self, number: int, about: Any, _context: object) -> None:
        """Save; a fault comes again on return, where it happened, and a signal that was sent is sent again."""
        self.remove()
        if os.getpid() == self._process:
            self._library.signal(signal.SIGALRM, 0)
            self._library.alarm(PATIENCE)
            with contextlib.suppress(BaseException):
                self._save()
            self._library.alarm(0)
        sent = about.contents[2] <= 0  # si_code
        if sent:
            getattr(self._library, "raise")(number)


@functools.cache
def _stack() -> mmap.mmap:
    """Return where a handler runs whose own stack is full; kept for good, since the system goes on using it."""
    return mmap.mmap(-1, STACK)


def last_words(dump: str) -> str:
    """Return what a dump of faulthandler says of the crash itself: its name, and the script's calls that led there.

    Other threads and our own calls are left out; any other text is returned as it is.
    """
    _, fatal, told = dump.rpartition("Fatal Python error: ")
    lines = told.splitlines()
    begin = next((n for n, line in enumerate(lines) if line.startswith("Current thread")), None)
    if not fatal or begin is None:
        return dump.strip()
    calls = []
    for line in lines[begin + 1 :]:
        if not line.startswith('  File "'):
            break
        path = line.split('"')[1]
        if not is_ours(path) and not path.startswith("<frozen runpy"):
            calls.append(line)
    return "\n".join([lines[0], *calls])
