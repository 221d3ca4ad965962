"""Tracebacks as Python prints them, with the engine's own frames left out."""

from __future__ import annotations

import dis
import os
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ENGINE = os.path.dirname(HERE) + os.sep
SHOW_OURS = bool(os.environ.get("STRIDESCOPE_FRAMES"))  # for those who look for a fault of the engine itself


def is_ours(path: str) -> bool:
    """Say whether a code's file is the engine's, or its text was written by the engine for an op."""
    return path.startswith((ENGINE, "<op "))


def strip(error: BaseException | None) -> None:
    """Take the engine's frames out of an exception's traceback and out of those it is chained to."""
    seen: set[int] = set()
    waiting = [] if SHOW_OURS else [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = without_ours(current.__traceback__, isinstance(current, RecursionError))
        waiting += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions


def without_ours(first: types.TracebackType | None, too_deep: bool = False) -> types.TracebackType | None:
    """Return the traceback less the engine's entries.

    Where the stack was ``too_deep`` for the tracer to be told of one more call, that call is left out: without the
    tracer Python refuses it before it is entered.
    """
    kept = [entry for entry in entries(first) if not is_ours(entry.tb_frame.f_code.co_filename)]
    if too_deep and kept and _is_at_its_start(kept[-1]):
        kept.pop()
    for entry, following in zip(kept, [*kept[1:], None], strict=False):
        entry.tb_next = following
    return kept[0] if kept else None


def _is_at_its_start(entry: types.TracebackType) -> bool:
    """Say whether a call was only about to begin: it stands where RESUME does, or in what was added to tell of it."""
    code, unit = entry.tb_frame.f_code, entry.tb_lasti >> 1
    columns = [column for _, _, column, _ in code.co_positions()]
    begin = code.co_code[::2].index(dis.opmap["RESUME"])
    return unit == begin or columns[unit] is None and columns[begin] is not None


def entries(entry: types.TracebackType | None) -> Iterator[types.TracebackType]:
    """Yield the entries of a traceback, outermost first."""
    while entry is not None:
        yield entry
        entry = entry.tb_next


def deepest(entry: types.TracebackType | None) -> types.TracebackType | None:
    """Return the entry where the exception was raised."""
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry


def hide_ours() -> None:
    """Leave the engine's frames out wherever this process prints a traceback, also in threads and by the script.

    ``sys.excepthook`` stays Python's own: whoever reports the script's failure strips the exception first.
    """
    _strip_before(sys, "unraisablehook", lambda arguments: arguments[0].exc_value)
    _strip_before(threading, "excepthook", lambda arguments: arguments[0].exc_value)
    _strip_extracted()


def _strip_before(owner: Any, name: str, error_of: Callable[[tuple[Any, ...]], BaseException | None]) -> None:
    original = getattr(owner, name)

    def hook(*arguments: Any) -> Any:
        strip(error_of(arguments))
        return original(*arguments)

    setattr(owner, name, hook)


def _strip_extracted() -> None:
    """Filter what the traceback module reads, so that the script's own ``traceback.format_exc()`` agrees."""
    walk: Callable[..., Iterator[tuple[types.FrameType, Any]]] | None
    walk = getattr(traceback, "_walk_tb_with_full_positions", None)
    if walk is None or SHOW_OURS:
        return

    def filtered(entry: types.TracebackType | None) -> Iterator[tuple[types.FrameType, Any]]:
        return (pair for pair in walk(entry) if not is_ours(pair[0].f_code.co_filename))

    traceback._walk_tb_with_full_positions = filtered  # type: ignore[attr-defined]
