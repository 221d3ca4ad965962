"""A profile as files: for Chrome's tracing page, and as stacks for flame graphs."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from typing import Any

CATEGORIES = {0: "cpu_op", 1: "cpu_op", 7: "user_annotation"}  # by the scope of an event


def write_chrome(events: Sequence[Any], path: str, metadata: dict[str, str] | None = None) -> None:
    """Write complete ("X") events with times in microseconds, and what ``metadata`` adds to the file."""
    process = os.getpid()
    trace = {
        "schemaVersion": 1,
        "deviceProperties": [],
        **{key: json.loads(value) for key, value in (metadata or {}).items()},
        "traceEvents": [_complete(event, process) for event in events],
        "traceName": str(path),
    }
    text = json.dumps(trace, indent=1)
    if str(path).endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as packed:
            packed.write(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def _complete(event: Any, process: int) -> dict[str, Any]:
    args: dict[str, Any] = {"External id": event.id, "Record function id": 0, "Ev Idx": event.id}
    if event.input_shapes:
        args["Input Dims"] = event.input_shapes
    if event.sequence_nr >= 0:
        args |= {"Sequence number": event.sequence_nr, "Fwd thread id": event.fwd_thread or 0}
    if event.stack:
        args["Call stack"] = ";".join(event.stack)
    return {
        "ph": "X", "cat": CATEGORIES.get(event.scope, "cpu_op"), "name": event.trace_name, "pid": process,
        "tid": event.thread, "ts": event.time_range.start, "dur": event.time_range.elapsed_us(), "args": args,
    }  # fmt: skip


def write_stacks(events: Sequence[Any], path: str, metric: str) -> None:
    """Write each call stack, outermost call first, with the whole microseconds that ``metric`` gives it."""
    field = metric.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
    forbidden = str.maketrans(" ;\t\n", "____")
    with open(path, "w", encoding="utf-8") as file:
        for event in events:
            weight = int(getattr(event, field))
            if event.stack and weight > 0:
                file.write(";".join(entry.translate(forbidden) for entry in reversed(event.stack)) + f" {weight}\n")
