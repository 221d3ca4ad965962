"""Reading the local names of a running frame without disturbing it.

Until 3.12, ``frame.f_locals`` of a function is a copy that Python keeps in the frame: asking for it changes what the
script got from ``locals()`` before, and keeps alive whatever the script lets go of. Python 3.12 has another door to
one variable at a time; 3.13 made ``f_locals`` a view. Under ``settrace`` (3.11) the copy is made anyway.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

OPTIMIZED = 1  # CO_OPTIMIZED: the locals stand in slots, not in a dict


class Locals(Protocol):
    """Names of a frame, for reading."""

    def __getitem__(self, name: str, /) -> Any:
        """Return what a name stands for; raises KeyError."""

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""

    def keys(self) -> Iterable[str]:
        """Return the names."""


class Slots:
    """The locals of a function's frame in Python 3.12, read one by one: as much of a mapping as ``eval`` needs."""

    __slots__ = ("_frame",)

    def __init__(self, frame: types.FrameType) -> None:
        self._frame = frame

    def __getitem__(self, name: str) -> Any:
        try:
            return _get_variable(self._frame, name)
        except NameError:
            raise KeyError(name) from None

    def __contains__(self, name: str) -> bool:
        try:
            self[name]
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        """Return the names that stand for something now."""
        code = self._frame.f_code
        return [name for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars) if name in self]


Read = Callable[[str], Any]

if sys.version_info[:2] == (3, 12):
    # A prototype of its own: half the time of a call through ctypes.pythonapi.
    _get_variable = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object)(
        ("PyFrame_GetVar", ctypes.pythonapi)
    )

    def locals_of(frame: types.FrameType) -> Locals:
        """Return the frame's local names for reading."""
        return Slots(frame) if frame.f_code.co_flags & OPTIMIZED else frame.f_locals

    def reader_of(frame: types.FrameType) -> Read:
        """Return what reads a local of a function's frame; it raises KeyError or NameError for what is not there."""
        return functools.partial(_get_variable, frame)

else:

    def locals_of(frame: types.FrameType) -> Locals:
        """Return the frame's local names for reading."""
        return frame.f_locals

    def reader_of(frame: types.FrameType) -> Read:
        """Return what reads a local of a function's frame; it raises KeyError or NameError for what is not there."""
        return frame.f_locals.__getitem__


def write_back(frame: types.FrameType) -> None:
    """Let what was changed in ``frame.f_locals`` count for the script, where that is a copy."""
    if sys.version_info < (3, 13) and frame.f_code.co_flags & OPTIMIZED:
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
