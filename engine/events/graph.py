"""Graph events: what autograd builds."""

from __future__ import annotations

from stridescope.engine.events.base import Event


class NodeMade(Event, family="graph"):
    """{name} joins the graph."""

    node: int
    name: str
    sequence_nr: int
    next_nodes: tuple[int, ...]
    next_inputs: tuple[int, ...]
    variable: int


class NodeEdgesSet(Event, family="graph"):
    """The node now leads elsewhere: an in-place write on a view rebased the history."""

    node: int
    next_nodes: tuple[int, ...]
    next_inputs: tuple[int, ...]


class GradFnSet(Event, family="graph"):
    """The tensor is now output {output_nr} of its node."""

    tensor: int
    node: int
    output_nr: int


class TensorSaved(Event, family="graph"):
    """The node keeps {field} at version {version} for backward."""

    node: int
    field: str
    tensor: int
    storage: int
    nbytes: int
    version: int
    is_output: bool


class SavedFreed(Event, family="graph"):
    """The node lets go of what it saved."""

    node: int


class NodeFreed(Event, family="graph"):
    """The node is gone."""

    node: int
