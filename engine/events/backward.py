"""Backward events: what the engine walks."""

from __future__ import annotations

from stridescope.engine.events.base import Event


class BackwardBegan(Event, family="backward"):
    """Backward pass {number} begins."""

    number: int
    roots: tuple[int, ...]
    keep_graph: bool


class DependenciesCounted(Event, family="backward"):
    """The engine counted how many gradients each node waits for."""

    number: int
    nodes: tuple[int, ...]
    counts: tuple[int, ...]


class NodeReady(Event, family="backward"):
    """All gradients of the node have arrived: it joins the ready queue."""

    node: int


class NodeBegan(Event, family="backward"):
    """The node receives its gradients and runs."""

    node: int
    gradients: tuple[int, ...]


class GradientSent(Event, family="backward"):
    """A gradient travels on; the receiver still waits for {waiting}."""

    node: int
    receiver: int
    input_nr: int
    gradient: int
    summed: bool
    waiting: int


class GradAccumulated(Event, family="backward"):
    """The gradient is added to the leaf's .grad."""

    tensor: int
    grad: int
    first: bool


class GradSet(Event, family="backward"):
    """.grad is set."""

    tensor: int
    grad: int


class HookRan(Event, family="backward"):
    """A {kind} ran."""

    kind: str
    node: int
    tensor: int


class NodeEnded(Event, family="backward"):
    """The node is done."""

    node: int


class BackwardEnded(Event, family="backward"):
    """Backward pass {number} ends."""

    # A node that began and did not end has failed, and the pass with it.

    number: int
