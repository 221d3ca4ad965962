"""Reading the local names of a running frame without disturbing it.

Until 3.12, ``frame.f_locals`` of a function is a copy that Python keeps in the frame: asking for it changes what the
script got from ``locals()`` before, and keeps alive whatever the script lets go of. Python 3.12 has another door to
one variable at a time; 3.13 made ``f_locals`` a view.

All these doors are slow for what a tracer reads at every line. Where the interpreter's own slots are laid out as in
CPython 3.11 to 3.13 on 64 bits, they are read where they lie, at a tenth of the price (:func:`layout_of`).
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

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


Values = ctypes.Array[Any]  # the slots of a frame; reading an empty one raises ValueError


class Layout(NamedTuple):
    """Where a code object's frames have their locals.

    ``places`` says it by name, but for the ``cells``, which closures share. ``seen`` keeps what reads the slots at an
    address: the interpreter's frames of a function lie in few places.
    """

    places: dict[str, int]
    cells: dict[str, int]
    kind: type[Values]
    seen: dict[int, Values]

    def values(self, frame: types.FrameType) -> Values:
        """Return the slots of a frame, good until its call ends: the interpreter's frame moves then."""
        return self.values_at(lies_at(frame).value or 0)

    def values_at(self, base: int) -> Values:
        """Return the slots of the interpreter's frame at an address."""
        if (known := self.seen.get(base)) is not None:
            return known
        if len(self.seen) > _MOST_SEEN:
            self.seen.clear()
        values = self.seen[base] = self.kind.from_address(base + _SLOTS)
        return values

    def in_cell(self, values: Values, name: str) -> Any:
        """Read a name that closures share; raises KeyError for one that is none, ValueError for an empty one."""
        value = values[self.cells[name]]
        return value.cell_contents if type(value) is types.CellType else value


# ``PyFrameObject.f_frame`` and ``_PyInterpreterFrame.localsplus``, in bytes: Include/internal/pycore_frame.h.
_INTERPRETER_FRAME, _SLOTS = 24, 72
_MOST_SEEN = 1024
_LIES_AT: dict[int, ctypes.c_void_p] = {}  # by id(frame): what reads where the interpreter's frame lies


def lies_at(frame: types.FrameType) -> ctypes.c_void_p:
    """Return what reads the address of a frame's interpreter frame, good as long as the frame lives."""
    if (known := _LIES_AT.get(id(frame))) is not None:
        return known
    if len(_LIES_AT) > _MOST_SEEN:
        _LIES_AT.clear()
    found = _LIES_AT[id(frame)] = ctypes.c_void_p.from_address(id(frame) + _INTERPRETER_FRAME)
    return found


def layout_of(code: types.CodeType) -> Layout | None:
    """Return where frames of a function have their locals; None where this Python lays them out otherwise."""
    return _layout(code) if _slots_are_known() else None


def _layout(code: types.CodeType) -> Layout:
    shared = frozenset(code.co_cellvars + code.co_freevars)
    count = len(code.co_varnames) + len(shared.difference(code.co_varnames))
    name_of: Callable[[int], str] = code._varname_from_oparg  # type: ignore[attr-defined]
    places = {name_of(place): place for place in range(count)}
    cells = {name: places.pop(name) for name in shared}
    return Layout(places, cells, ctypes.py_object * count, {})


@functools.cache
def _slots_are_known() -> bool:
    """Say whether this Python is one of those whose frames were looked into, and has them so."""
    known = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info[:2] <= (3, 13)
    odd = hasattr(sys, "getobjects") or bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    return known and not odd and ctypes.sizeof(ctypes.c_void_p) == 8 and _probe(1.5, [])


def _probe(number: float, shared: list[object]) -> bool:
    """Read this very call's locals and compare."""

    def closure() -> object:
        return shared

    layout = _layout((frame := sys._getframe()).f_code)
    values, places = layout.values(frame), layout.places
    own = values[places["number"]] is number and values[places["closure"]] is closure
    return own and layout.in_cell(values, "shared") is closure()


def write_back(frame: types.FrameType) -> None:
    """Let what was changed in ``frame.f_locals`` count for the script, where that is a copy."""
    if sys.version_info < (3, 13) and frame.f_code.co_flags & OPTIMIZED:
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
