"""Backward passes inside backward passes, however deep: past some depth the next one walks in a thread of its own.

A function whose backward calls backward stands on the stack of the pass that called it. Python's stack has a limit, so
a pass that starts far down a thread hands its walk to a new one, as PyTorch's engine does, and waits for it.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import types
from collections.abc import Callable

from stridescope.engine.autograd.modes import grad_mode

DEEPEST = 30  # passes on one thread's stack; PyTorch's engine has fewer Python frames, and allows 60


class Relay(threading.Thread):
    """A thread that runs ``walk`` for the thread that waits for it, in the same modes.

    Attributes:
        behind: by the outermost frame of every relay at work, the frame that waits for it.
    """

    behind: dict[types.FrameType, types.FrameType] = {}
    _callers: dict[int, int] = {}  # by thread: the one that it works for

    def __init__(self, walk: Callable[[], None]) -> None:
        super().__init__(name="stridescope-backward", daemon=True)
        self._walk, self._waiting = walk, sys._getframe(1)
        self._modes, self._caller = dict(grad_mode.__dict__), Relay.origin()
        self._error: BaseException | None = None

    @classmethod
    def origin(cls) -> int:
        """The identity of this thread or, in a relay, of the one that works for in the end."""
        this = threading.get_ident()
        return cls._callers.get(this, this)

    def run(self) -> None:
        """Walk, and keep what was raised for the one who waits."""
        this, bottom = threading.get_ident(), _outermost(sys._getframe())
        self._callers[this], self.behind[bottom] = self._caller, self._waiting
        grad_mode.__dict__.update(self._modes)
        try:
            self._walk()
        except BaseException as error:
            self._error = error
        finally:
            del self._callers[this], self.behind[bottom], self._waiting, self._walk

    def wait(self) -> None:
        """Wait for the end, and raise what was raised there; an interrupt of this thread is one of the relay."""
        self.start()
        while self.is_alive():
            try:
                self.join()
            except BaseException as error:
                _raise_in(self.ident or 0, type(error))
        raised, self._error = self._error, None
        if raised is not None:
            try:
                raise raised
            finally:
                del raised  # its traceback holds this frame


def _outermost(frame: types.FrameType) -> types.FrameType:
    while frame.f_back is not None:
        frame = frame.f_back
    return frame


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))
