"""The graph picture: what nodes say, which edges are hot, where nodes lie."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from stridescope.app.items.layered import CAREFUL, place
from stridescope.app.moment import Moment
from stridescope.app.panels.graph_model import GraphPicture, picture
from stridescope.app.panels.graph_place import COLUMN, SMALL, placed, stub_place
from stridescope.app.selection import follow
from stridescope.engine.recording.reader import Recording


def shown(recording: Recording, step: int) -> GraphPicture:
    state = recording.state(step)
    return picture(Moment(recording, state, recording.steps - 1, follow(state)))


def faces(drawn: GraphPicture) -> dict[str, str]:
    return {drawn.face(node).title: drawn.face(node).detail for node in drawn.place.ids}


def test_the_graph_grows_with_the_ops(strides: Recording) -> None:
    counts = [len(shown(strides, int(step)).moment.state.nodes) for step in strides.ops()]
    assert counts == sorted(counts) and counts[-1] == 4
    assert shown(strides, int(strides.ops()[0])).place.ids == ()


def test_what_nodes_say(strides: Recording) -> None:
    drawn = shown(strides, int(strides.lines()[-2]))
    assert faces(drawn) == {
        "AccumulateGrad": "w · leaf",
        "MmBackward0": "saved: self (a) v0 · 48 B",
        "ReluBackward0": "y · saved: result v0 · 24 B",
        "None": "a does not require grad",
    }
    assert drawn.news[0] == "ReluBackward0 → MmBackward0 (input 0)"


def test_what_is_new_in_a_step(strides: Recording) -> None:
    end_of_relu = int(strides.lines()[-2]) - 4
    assert shown(strides, end_of_relu).news[0] == "ReluBackward0 → MmBackward0 (input 0)"


def test_backward_walks_node_after_node(strides: Recording) -> None:
    titles = []
    for step in strides.backwards():
        drawn = shown(strides, int(step))
        titles.append(drawn.face(drawn.now).title)
        assert drawn.title == "Graph — backward pass 1"
        assert drawn.ready[0] == (titles[-1], "deps 0")
        assert sum(edge.sent for edge in drawn.edges(drawn.place.ids)) == len(titles) - 1
    assert titles == ["MeanBackward0", "PowBackward0", "ReluBackward0", "MmBackward0", "AccumulateGrad"]


def test_gradients_on_edges_and_freed_marks(strides: Recording) -> None:
    drawn = shown(strides, int(strides.backwards()[2]))
    assert {edge.label for edge in drawn.edges(drawn.place.ids) if edge.sent} == {"grad 3×2  mean 0.167"}
    assert faces(drawn)["PowBackward0"] == "saved: freed · 24 B"
    assert [edge.going for edge in drawn.edges(drawn.place.ids) if edge.source == drawn.now] == [True]


def test_layers_point_down(strides: Recording) -> None:
    drawn = shown(strides, int(strides.backwards()[0]))
    where = {node: (x, y) for node, x, y in zip(drawn.place.ids, drawn.place.x, drawn.place.y, strict=True)}
    assert all(where[edge.source][1] < where[edge.target][1] for edge in drawn.edges(drawn.place.ids))
    assert len(set(where.values())) == len(where)


def test_a_shared_leaf_is_a_badge_in_a_large_graph() -> None:
    leaf, steps = 1, range(2, 2 + 2 * SMALL)
    small = placed([(leaf, ()), *((n, ((leaf, 0),)) for n in range(2, 12))])
    large = placed([(leaf, ()), *((n, ((n - 1 if n > 2 else 0, 0), (leaf, 0))) for n in steps)])
    assert leaf in small.index and leaf not in large.index
    badges = [node for node in large.ids if node < 0]
    assert sorted(stub_place(badge) for badge in badges) == [(n, 1) for n in steps]
    assert np.ptp(large.x) <= 2 * COLUMN


def random_graph(nodes: int, seed: int) -> list[tuple[int, int]]:
    dice = random.Random(seed)
    return [(i, dice.randrange(max(0, i - 12), i)) for i in range(1, nodes) for _ in range(dice.randrange(1, 3))]


@pytest.mark.parametrize("nodes", [1, 2, 40, 300, CAREFUL + 500])
def test_no_two_nodes_share_a_place(nodes: int) -> None:
    edges = random_graph(nodes, nodes)
    x, layer = place(nodes, edges)
    assert all(layer[upper] > layer[lower] for upper, lower in edges)
    for level in np.unique(layer):
        columns = np.sort(x[layer == level])
        assert (np.diff(columns) > 0.99).all()


def test_a_diamond_is_symmetric() -> None:
    x, layer = place(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    assert layer.tolist() == [2, 1, 1, 0]
    assert x[0] == pytest.approx(x[3]) == pytest.approx((x[1] + x[2]) / 2)


def test_a_chain_is_straight() -> None:
    x, _ = place(30, list(itertools.pairwise(range(30))))
    assert np.ptp(x) == pytest.approx(0)


def test_a_late_leaf_lies_beside_its_consumer() -> None:
    _, layer = place(12, [*itertools.pairwise(range(11)), (0, 11)])
    assert layer[11] == layer[0] - 1


@pytest.mark.parametrize("layers", [4, 30])
def test_the_parameters_of_a_deep_net_stand_beside_its_straight_chain(layers: int) -> None:
    """As n Linear in a row: addmm n takes a bias, what addmm n - 1 gave, and the transpose of a weight."""
    addmms, edges = [4 * n for n in range(layers)], []
    for addmm in addmms:
        bias, transpose, weight, given = addmm + 1, addmm + 2, addmm + 3, addmm + 4
        edges += [(addmm, bias), (addmm, given), (addmm, transpose), (transpose, weight)]
    columns, rows = place(4 * layers + 1, edges)
    assert np.ptp(columns[addmms]) < 1
    assert np.ptp(columns) < 4
    assert all(rows[addmm] - 1 == rows[addmm + 1] == rows[addmm + 2] for addmm in addmms)


def test_fifty_thousand_nodes_are_placed_quickly() -> None:
    x, _ = place(50_000, random_graph(50_000, 7))
    assert len(x) == 50_000 and np.isfinite(x).all()
