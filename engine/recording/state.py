"""The state of the machine at a step: the fold of all events up to it.

Every event that moves the machine is listed once, in the ``FOLDS`` of its family; the allocator's own events go to
:class:`AllocatorState`. Events that concern things the recording never saw being made are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stridescope.engine.events import EVENTS, Wire
from stridescope.engine.recording import fold_graph, fold_line, fold_module, fold_tensor
from stridescope.engine.recording.machine import Machine


def _allocator_moved(machine: Machine, wire: Wire) -> None:
    try:
        machine.edit_allocator().apply(machine.step, wire)
    except (LookupError, StopIteration):  # a segment or block from before the recording began
        return


def _passed_over(machine: Machine, wire: Wire) -> None:
    pass


_FOLDS = {**fold_line.FOLDS, **fold_tensor.FOLDS, **fold_graph.FOLDS, **fold_module.FOLDS}
_ALLOCATOR_EVENTS = {event for event in EVENTS if event.__module__.endswith(".events.memory")}

# By wire code, so that the loop below is one index and one call an event.
_BY_CODE: list[Callable[[Machine, Wire], None]] = [
    _allocator_moved if event in _ALLOCATOR_EVENTS else _FOLDS.get(event, _passed_over) for event in EVENTS
]


def advance(machine: Machine, wires: Sequence[Wire]) -> None:
    """Move the machine on by these events."""
    folds, step = _BY_CODE, machine.step
    for wire in wires:
        machine.step = step = step + 1
        folds[wire[0]](machine, wire)
