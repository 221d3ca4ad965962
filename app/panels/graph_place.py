"""Where the nodes of the graph panel lie, with stubs for edges that lead nowhere and badges for shared leaves."""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import cast

import numpy as np

from stridescope.app.items.layered import place
from stridescope.app.moment import Moment
from stridescope.app.origins import memory_of
from stridescope.engine.events import NodeEdgesSet

COLUMN, LAYER = 224.0, 100.0
NODE_WIDTH, NODE_HEIGHT = 200.0, 54.0
SMALL = 80  # nodes: in larger graphs ways to nowhere are not drawn and shared leaves become badges
SHARED = 3  # consumers: a leaf with more is drawn as a badge at each of them
PLACES_KEPT = 48  # layouts remembered for stepping back and forth
_SLOTS = 1 << 12

Edges = tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True)
class Place:
    """Centres of all nodes of a graph; negative ids are stubs and badges at the end of an edge.

    ``above`` are the consumers of each node.
    """

    ids: tuple[int, ...]
    index: dict[int, int]
    x: np.ndarray
    y: np.ndarray
    above: dict[int, list[int]]


def stub(node: int, slot: int) -> int:
    """Return the id of what is drawn at the end of an edge in place of a node."""
    return -(node * _SLOTS + slot + 1)


def stub_place(stub_id: int) -> tuple[int, int]:
    """Return the node and the slot of its edge that a stub ends."""
    return divmod(-stub_id - 1, _SLOTS)


def place_of(moment: Moment) -> Place:
    """Lay the graph out; the same graph of a recording is laid out once.

    Nodes never change but by NodeEdgesSet, so their ids and the number of those events name a graph.
    """
    recording, nodes = moment.recording, moment.state.nodes
    rebased = int(np.searchsorted(recording.steps_of(NodeEdgesSet), moment.step, side="right"))
    key = (np.fromiter(nodes, np.int64, len(nodes)).tobytes(), rebased)
    places = memory_of(recording).setdefault("places", OrderedDict())
    if key not in places:
        places[key] = placed([(node.id, node.edges) for node in nodes.values()])
        while len(places) > PLACES_KEPT:
            places.popitem(last=False)
    return cast(Place, places[key])


def placed(nodes: Sequence[tuple[int, Edges]]) -> Place:
    """Lay out nodes given as (id, edges)."""
    known, hubs = {node for node, _ in nodes}, set() if len(nodes) <= SMALL else _hubs(nodes)
    pairs = [
        (node, target if target in known and target not in hubs else stub(node, slot))
        for node, edges in nodes
        for slot, (target, _) in enumerate(edges)
        if target in known or (not target and len(nodes) <= SMALL)
    ]
    ids = [node for node, _ in nodes if node not in hubs] + [end for _, end in pairs if end < 0]
    index = {node: i for i, node in enumerate(ids)}
    above: dict[int, list[int]] = {}
    for node, end in pairs:
        above.setdefault(end, []).append(node)
    x, layer = place(len(ids), [(index[a], index[b]) for a, b in pairs])
    return Place(tuple(ids), index, x * COLUMN, -layer * LAYER, above)


def _hubs(nodes: Sequence[tuple[int, Edges]]) -> set[int]:
    """Return the leaves that so many nodes share that their edges would cover the picture."""
    consumers = Counter(target for _, edges in nodes for target, _ in edges)
    return {node for node, edges in nodes if not edges and consumers[node] > SHARED}
