"""What the frames of the user's program say: the line that runs, and the variable that a call's result goes to."""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType, FrameType
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import is_ours

_STORES = ("STORE_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "STORE_NAME", "STORE_DEREF")
_RETURNS = ("RETURN_VALUE",)


@functools.lru_cache(maxsize=256)
def _next_by_offset(code: CodeType) -> dict[int, Any]:
    """By an instruction's offset: the one behind it, less what a watch has put in: that stands in no column."""
    columns = any(column is not None for _, _, column, _ in code.co_positions())
    instructions = [
        i
        for i in dis.get_instructions(code)
        if i.opname != "CACHE"
        and not (columns and i.positions and i.positions.lineno and i.positions.col_offset is None)
    ]
    return {before.offset: after for before, after in zip(instructions, instructions[1:], strict=False)}


def stored_name() -> str | None:
    """The local variable that the value of the running call goes to, through the calls that return it; else None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_of_machinery(frame):
        frame = frame.f_back
    while frame is not None:
        after = _next_by_offset(frame.f_code).get(frame.f_lasti)
        if after is not None and after.opname in _STORES:
            name = after.argval[0] if isinstance(after.argval, tuple) else after.argval
            return None if not isinstance(name, str) else name
        if after is None or after.opname not in _RETURNS:
            return None
        frame = frame.f_back
        while frame is not None and "self" in frame.f_locals and frame.f_code.co_name == "__call__":
            frame = frame.f_back  # a module is called through these
    return None


def _is_of_machinery(frame: FrameType) -> bool:
    """Whether a frame belongs to the recorder or the watch, and not to the program nor to a module's ``forward``."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.startswith("stridescope.engine") and ".nn.modules" not in name


def user_frame() -> FrameType | None:
    """The innermost frame of the user's program."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return frame


def variable_of(tensor: Tensor) -> str | None:
    """The local variable of the user's program that holds a tensor, if one does."""
    frame = user_frame()
    if frame is None:
        return None
    return next((name for name, value in frame.f_locals.items() if value is tensor), None)
