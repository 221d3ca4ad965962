"""Where stepping comes to rest, said once: for the worker's gate, for the reader and for the window."""

from __future__ import annotations

from collections.abc import Iterable

from stridescope.engine import events
from stridescope.engine.events import EVENTS, Event

Kinds = tuple[type[Event], ...]
LINES: Kinds = (events.LineReached,)
OPS: Kinds = (events.OpBegan, events.NodeBegan)
DECISIONS: Kinds = (*(kind for kind in EVENTS if kind.family != "line"), events.ExceptionRaised, events.LineReached)
GRAINS: dict[str, Kinds] = {"line": LINES, "op": OPS, "event": DECISIONS}
# What ends an op or a node's run. A backward pass is no level: stepping over ops walks node after node.
CLOSERS: Kinds = (events.OpEnded, events.OpFailed, events.NodeEnded)


def codes(kinds: Iterable[type[Event]]) -> frozenset[int]:
    """The wire codes of these kinds of events, for the hot paths."""
    return frozenset(kind.code for kind in kinds)
