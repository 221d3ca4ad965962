"""The history of the memory, and snapshots of it: the underscored functions of ``torch.cuda.memory``."""

from __future__ import annotations

import sys
from typing import Any

from stridescope.engine.devices.memory_history import ACTIONS, CONTEXTS, MemoryHistory, frames_of
from stridescope.engine.devices.registry import cuda_devices
from stridescope.engine.devices.snapshot import snapshot
from stridescope.engine.devices.snapshot_file import dump_snapshot


class _Metadata:
    """What ``_set_memory_metadata`` attaches to every later entry."""

    text = ""


def _record_memory_history(enabled: str | bool | None = "all", *args: Any, **options: Any) -> None:
    """Keep a history of the memory: None stops, "state" keeps stacks of live blocks, "all" every call.

    A bool in place of the word selects PyTorch's older signature.
    """
    if isinstance(enabled, bool):
        _record_legacy(enabled, *args, **options)
    else:
        _record(enabled, *args, **options)


def _record(
    enabled: str | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: Any = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: list[str] | None = None,
) -> None:
    if enabled not in ("state", "all", None):
        raise RuntimeError("expected state to be 'state', 'all', or None")
    if context not in CONTEXTS:
        raise RuntimeError("expected context to be 'state', 'alloc', 'all', or None")
    if stacks not in ("python", "all"):
        raise RuntimeError("expected stacks to be 'python', or 'all'")
    if not isinstance(max_entries, int) or max_entries < 0:
        raise TypeError(f"_record_memory_history(): max_entries must be a number that is not negative: {max_entries!r}")
    for action in skip_actions or ():
        if action not in ACTIONS:
            raise RuntimeError(f"Unknown TraceEntry action: {action}")
    for found in cuda_devices():
        log = found.allocator.log
        if enabled is None:
            log.history = None
            continue
        made = MemoryHistory(context, max_entries, frozenset(skip_actions or ()), enabled == "state")
        made.metadata = _Metadata.text
        if log.history is not None and not clear_history:
            made.keep_entries_of(log.history)
        log.history = made


def _record_legacy(
    enabled: bool,
    record_context: bool = True,
    trace_alloc_max_entries: int = 1,
    trace_alloc_record_context: bool = False,
    device: Any = None,
    record_context_cpp: bool = False,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: list[str] | None = None,
) -> None:
    context = "state" if record_context else None
    if trace_alloc_record_context:
        context = "alloc"
    _record(
        "all" if enabled else None,
        context,
        "all" if record_context_cpp else "python",
        trace_alloc_max_entries,
        clear_history=clear_history,
        skip_actions=skip_actions,
    )


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Segments, traces and options of all devices."""
    return snapshot([found.allocator for found in cuda_devices()])


def _dump_snapshot(filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    """Write a snapshot to a file that PyTorch's viewers open."""
    dump_snapshot(_snapshot(augment_with_fx_traces=augment_with_fx_traces), filename)


def _allocation_traceback(data_ptr: int) -> list[dict[str, Any]] | None:
    """The stack that allocated a live block, by its address; None when there is no block or no stack was kept."""
    for found in cuda_devices():
        block = found.allocator.active.get(data_ptr)
        if block is not None and block.stack is not None:
            return frames_of(block.stack)
    return None


def _set_memory_metadata(metadata: str) -> None:
    """Attach a text to every later entry of the history."""
    _Metadata.text = metadata
    for found in cuda_devices():
        if found.allocator.log.history is not None:
            found.allocator.log.history.metadata = metadata


def _get_memory_metadata() -> str:
    """The text that is attached to entries."""
    return _Metadata.text
