"""Files of allocator traces: reading, checking, and comparing a replay with what a trace expects."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from stridescope.engine.devices.trace_replay import OPERATIONS, TraceReplay


class TraceError(ValueError):
    """A file that holds no traces, or one that cannot be run; the text is one line."""


def load_traces(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read and check a file of traces; raises TraceError with one clear line, or OSError."""
    try:
        found = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise TraceError(f"it is no valid JSON ({error})") from None
    traces = found if isinstance(found, list) else [found]
    for number, trace in enumerate(traces):
        _check_trace(number, trace)
    return traces


def _check_trace(number: int, trace: Any) -> None:
    if not isinstance(trace, dict) or not isinstance(trace.get("ops"), list):
        raise TraceError(f"trace {number} is no object with a list of ops")
    trace.setdefault("id", f"trace {number}")
    if not isinstance(trace.get("total"), int) or trace["total"] <= 0:
        raise TraceError(f"{trace['id']} has no total above 0")
    if not isinstance(trace.get("conf", ""), str) or not isinstance(trace.get("fraction", 1.0), int | float):
        raise TraceError(f"{trace['id']} has a conf that is no text, or a fraction that is no number")
    pools: set[str] = set()
    for place, op in enumerate(trace["ops"]):
        if not _is_operation(op):
            known = ", ".join(OPERATIONS)
            raise TraceError(f"{trace['id']}: op {place} is none of {known} with its arguments: {op!r:.80}")
        if op[0] == "pool":
            pools.add(op[1])
        elif op[0] in ("enter", "exit", "delpool") and op[1] not in pools:
            raise TraceError(f"{trace['id']}: op {place} names the pool {op[1]!r:.40}, which no op made")


def _is_operation(op: Any) -> bool:
    if not isinstance(op, list) or not op or not isinstance(op[0], str) or op[0] not in OPERATIONS:
        return False
    kinds = OPERATIONS[op[0]][1]
    if len(op) != len(kinds) + 1 or any(isinstance(value, int) and value < 0 for value in op[1:]):
        return False
    return all(isinstance(value, kind) for value, kind in zip(op[1:], kinds, strict=True))


def run_trace(trace: dict[str, Any], conf: str | None = None, total: int | None = None) -> dict[str, Any]:
    """The outcome of one checked trace; raises TraceError when an op cannot be done."""
    try:
        return TraceReplay(trace, conf, total).result()
    except (ValueError, LookupError, RuntimeError) as error:
        raise TraceError(f"{trace['id']}: {error}") from error


def first_difference(expected: dict[str, Any], result: dict[str, Any]) -> str:
    """The first thing in which a replay differs from what the trace expects; empty when nothing does."""
    for part in ("addresses", "segments"):
        if part in expected and expected[part] != result[part]:
            return f"{part} differ: recorded {_short(expected[part])}, here {_short(result[part])}"
    if (recorded := expected.get("stats")) is None:
        return ""
    for key in sorted(set(recorded) | set(result["stats"])):
        if recorded.get(key, 0) != result["stats"].get(key, 0):
            return f"{key} differs: recorded {recorded.get(key, 0)}, here {result['stats'].get(key, 0)}"
    return ""


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
