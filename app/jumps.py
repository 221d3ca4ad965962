"""Where to go from here, as pure look-ups in a recording: landmarks, and the life of what is selected.

Nothing here knows Qt; every function returns a step, or None where the recording holds none (yet).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stridescope.app.selection import Selection, views_of
from stridescope.engine import events as ev
from stridescope.engine.recording.model import State
from stridescope.engine.recording.reader import Recording

# What one can run to; the names are those of the worker's breakpoints.
LANDMARKS: dict[str, tuple[type[ev.Event], ...]] = {
    "backward": (ev.BackwardBegan,),
    "allocation": (ev.BlockAllocated, ev.StorageMade),
    "copy": (ev.CopyMade,),
    "error": (ev.ExceptionRaised, ev.OpFailed, ev.OutOfMemory),
}
_WRITES = frozenset({ev.StorageWritten.code, ev.StorageSummarised.code, ev.StorageResized.code, ev.VersionBumped.code})


def next_landmark(recording: Recording, step: int, kind: str) -> int | None:
    """Return the first step after ``step`` at which something of ``kind`` happens."""
    return first_after(recording.steps_of(*LANDMARKS[kind]), step)


def previous_landmark(recording: Recording, step: int, kind: str) -> int | None:
    """Return the last step before ``step`` at which something of ``kind`` happened."""
    return last_before(recording.steps_of(*LANDMARKS[kind]), step)


def first_after(steps: np.ndarray, step: int) -> int | None:
    """Return the first of the sorted ``steps`` after ``step``."""
    at = int(np.searchsorted(steps, np.int64(step), side="right"))
    return int(steps[at]) if at < len(steps) else None


def last_before(steps: np.ndarray, step: int) -> int | None:
    """Return the last of the sorted ``steps`` before ``step``."""
    at = int(np.searchsorted(steps, np.int64(step), side="left"))
    return int(steps[at - 1]) if at else None


def birth(state: State, selection: Selection) -> int | None:
    """Return the step at which what is selected was made: the tensor, else the node, else the storage or its block."""
    if selection.tensor in state.tensors:
        return state.tensors[selection.tensor].born
    if selection.node in state.nodes:
        return state.nodes[selection.node].born
    storage = state.storages.get(selection.storage)
    return storage.born if storage is not None else None


def last_write(recording: Recording, state: State, selection: Selection) -> int | None:
    """Return the last step before this one that wrote into the selected storage, through whichever tensor."""
    return max((step for step in _writes(recording, state, selection.storage) if step < state.step), default=None)


def _writes(recording: Recording, state: State, storage: int) -> Iterable[int]:
    if not storage:
        return
    yield from (step for step in recording.history("storage", storage) if recording.code(step) in _WRITES)
    for counter in {view.counter for view in views_of(state, storage)}:  # values need not be kept, versions are
        yield from (step for step in recording.history("counter", counter) if recording.code(step) in _WRITES)


def next_read(recording: Recording, state: State, selection: Selection) -> int | None:
    """Return the next step at which an op, or a backward node, reads what is selected or another view of it."""
    found: list[int] = []
    for view in views_of(state, selection.storage):
        found += _reads(recording, state.step, view.id)
    if not selection.storage and selection.node:
        found += [step for step in recording.history("node", selection.node) if _runs(recording, step, selection.node)]
    return min((step for step in found if step > state.step), default=None)


def _reads(recording: Recording, after: int, tensor: int) -> Iterable[int]:
    for step in recording.history("tensor", tensor):
        if step <= after:
            continue
        event = recording.event(step)
        reads = event.inputs if isinstance(event, ev.OpBegan) else ()
        reads = event.gradients if isinstance(event, ev.NodeBegan) else reads
        if tensor in reads:
            yield step
            return


def _runs(recording: Recording, step: int, node: int) -> bool:
    event = recording.event(step)
    return isinstance(event, ev.NodeBegan) and event.node == node
