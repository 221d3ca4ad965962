"""A shorthand for allocator calls and what is left of them, so that a test reads like the rule it checks.

``run("a=3M; b=1K@1; free a", total="64M")`` gives the :class:`TraceReplay`; ``@1`` is the stream. ``layout`` writes
the segments as text: ``large 20M at 0 [A3M -17M]``, where A is allocated, P pending and - free.
"""

from __future__ import annotations

import re
from typing import Any

from stridescope.engine.devices.trace_replay import TraceReplay

_SIZE = re.compile(r"(\d+)([KM]?)([+-]\d+)?")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}
_LETTERS = {"active_allocated": "A", "active_pending_free": "P", "inactive": "-"}


def size_of(text: str) -> int:
    """Bytes from "3M", "512" or "1M+1"."""
    found = _SIZE.fullmatch(text)
    assert found is not None, text
    return int(found[1]) * _UNITS[found[2]] + int(found[3] or 0)


def _operation(text: str) -> list[Any]:
    if "=" in text:
        name, what = text.split("=")
        size, _, stream = what.partition("@")
        return ["alloc", name, size_of(size), int(stream or 0)]
    name, *arguments = text.split()
    if name == "pool":
        return [name, arguments[0], int("no_split" in arguments), int("use_on_oom" in arguments)]
    return [name, *(int(argument) if argument.isdigit() else argument for argument in arguments)]


def run(text: str, total: str = "1024M", conf: str = "", fraction: float = 1.0) -> TraceReplay:
    """Do what the text says, one call after the other."""
    operations = [_operation(part.strip()) for part in text.split(";")]
    return TraceReplay({"id": "", "total": size_of(total), "conf": conf, "fraction": fraction, "ops": operations})


def shown(size: int) -> str:
    """A size as short as it can be written."""
    for unit in ("M", "K"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)


def layout(replay: TraceReplay) -> list[str]:
    """The segments in address order."""
    lines = []
    for segment in replay.result()["segments"]:
        blocks = " ".join(f"{_LETTERS[state]}{shown(size)}" for size, _, state in segment["blocks"])
        stream = f" s{segment['stream']}" if segment["stream"] else ""
        pool = f" pool{segment['pool']}" if segment["pool"] else ""
        at = segment["at"]
        place = f"V{shown(int(at[1:]))}" if at.startswith("V") else shown(int(at))
        lines.append(f"{segment['type']} {shown(segment['size'])}{stream}{pool} at {place} [{blocks}]")
    return lines
