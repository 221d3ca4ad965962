"""The storage picture: which elements, which formula, which lanes."""

from __future__ import annotations

import dataclasses

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stridescope.app.items.marked import Marked, runs
from stridescope.app.moment import Moment
from stridescope.app.panels.storage_model import Strip, changed, element_grid, picture
from stridescope.app.selection import Selection, linked
from stridescope.engine.recording.model import State
from stridescope.engine.recording.reader import Recording


def named(state: State, name: str) -> int:
    return next(t.id for t in state.tensors.values() if name in t.names)


def moment(recording: Recording, step: int, name: str, cell: tuple[int, ...] | None = None) -> Moment:
    state = recording.state(step)
    return Moment(recording, state, recording.steps - 1, linked(state, Selection(tensor=named(state, name), cell=cell)))


@pytest.fixture
def line_6(strides: Recording) -> int:
    return int(strides.ops()[5])


def test_a_view_and_its_base(strides: Recording, line_6: int) -> None:
    shown = picture(moment(strides, line_6, "c", (1, 1)))
    assert shown is not None
    base, view = shown.grids
    assert (base.title, view.title) == ("a", "c = b[1:, ::2]")
    assert view.facts == "3×2 · stride (1, 8) · offset 1"
    assert view.elements.tolist() == [[1, 9], [2, 10], [3, 11]]
    assert base.lit.tolist() == [[False, True, True, True], [False] * 4, [False, True, True, True]]


def test_the_address_of_a_cell(strides: Recording, line_6: int) -> None:
    shown = picture(moment(strides, line_6, "c", (1, 1)))
    assert shown is not None and shown.address is not None
    assert shown.address.text == "c[1, 1]"
    assert shown.address.formula == "1 + 1·1 + 1·8 = 10"
    assert shown.address.legend == "offset + i·s₀ + j·s₁"
    assert (shown.address.element, shown.address.warning) == (10, True)
    assert shown.address.note == "not contiguous: stride(0) = 1, not 2"


def test_lanes_and_arcs(strides: Recording, line_6: int) -> None:
    shown = picture(moment(strides, line_6, "c"))
    assert shown is not None
    assert [(lane.name, lane.reads.total, lane.selected) for lane in shown.lanes] == [
        ("a", 12, False),
        ("b", 12, False),
        ("c", 6, True),
    ]
    assert [(arc.start, arc.end, arc.label) for arc in shown.arcs] == [(1, 2, "+1"), (1, 9, "+8")]


def test_strip_facts_and_other_storages(strides: Recording, line_6: int) -> None:
    shown = picture(moment(strides, line_6, "a"))
    assert shown is not None
    assert shown.strip.facts == "12 × float32 = 48 bytes · cpu · version 0 · shared by a, b, c"
    assert [strip.facts.partition(" ·")[0] for strip in shown.others] == ["w"]
    assert "leaf, requires_grad" in shown.others[0].facts
    assert shown.strip.values is not None and shown.strip.values.tolist() == list(range(12))


def test_a_cell_that_does_not_fit_is_replaced(strides: Recording, line_6: int) -> None:
    shown = picture(moment(strides, line_6, "c", (9, 9, 9)))
    assert shown is not None and shown.grids[-1].cell == (1, 1)


def test_an_element_selects_its_cell(strides: Recording, line_6: int) -> None:
    state = strides.state(line_6)
    selection = linked(state, Selection(tensor=named(state, "c"), element=11))
    shown = picture(Moment(strides, state, line_6, selection))
    assert shown is not None and shown.address is not None
    assert shown.address.text == "c[2, 1]"


def test_values_that_are_not_kept_are_said_so(allocator: Recording) -> None:
    shown = picture(moment(allocator, int(allocator.lines()[-1]), "k"))
    assert shown is not None
    assert shown.strip.values is None and shown.strip.summary == "values not kept"
    assert shown.strip.count == 1 << 20


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 7)), max_size=4), st.integers(0, 20))
def test_element_grid_is_pytorchs_formula(dims: list[tuple[int, int]], offset: int) -> None:
    sizes, strides = tuple(s for s, _ in dims), tuple(s for _, s in dims)
    grid = element_grid(sizes, strides, offset)
    assert grid.shape == sizes
    for index in np.ndindex(*sizes):
        assert grid[index] == offset + sum(i * s for i, s in zip(index, strides, strict=True))


def test_what_a_step_wrote() -> None:
    def strip(values: list[float], storage: int = 1) -> Strip:
        return Strip(storage, "", "", len(values), np.array(values, np.float32), Marked(np.ones(len(values), bool)), "")

    nan = float("nan")
    assert changed(strip([1, 2, nan]), strip([1, 5, nan])).tolist() == [1]
    assert changed(strip([1, 2]), strip([1, 5], storage=2)).tolist() == []
    assert changed(strip([]), strip([])).tolist() == []


def test_marks_between_edges() -> None:
    marked = Marked(np.array([0, 0, 1, 0, 0, 0, 1, 1], bool))
    assert marked.any_between(np.array([0, 2, 3, 6, 8])).tolist() == [False, True, False, True]
    assert marked.any_between(np.array([2, 2, 3])).tolist() == [True, True]
    assert runs(marked.mask) == [(2, 3), (6, 8)]


def test_a_huge_plane_is_sampled(strides: Recording, line_6: int) -> None:
    state = dataclasses.replace(strides.state(line_6))
    tensor = msgspec.structs.replace(state.tensors[named(state, "a")], sizes=(3000, 4000), strides=(4000, 1))
    state.tensors = {tensor.id: tensor}
    shown = picture(Moment(strides, state, line_6, linked(state, Selection(tensor=tensor.id))))
    assert shown is not None
    grid = shown.grids[-1]
    assert grid.shape == (3000, 4000) and max(grid.elements.shape) <= 512
    assert grid.elements[1, 1] == grid.step[0] * 4000 + grid.step[1]


def test_views_of_other_dtypes_share_the_strip(strides: Recording, line_6: int) -> None:
    state = dataclasses.replace(strides.state(line_6))
    a, c = (state.tensors[named(state, name)] for name in "ac")
    halves = msgspec.structs.replace(c, dtype="int16", sizes=(3,), strides=(4,), offset=2)
    state.tensors = {a.id: a, c.id: halves}
    shown = picture(Moment(strides, state, line_6, linked(state, Selection(tensor=a.id))))
    assert shown is not None
    assert [np.flatnonzero(lane.reads.mask).tolist() for lane in shown.lanes] == [list(range(12)), [1, 3, 5]]
    other = picture(Moment(strides, state, line_6, linked(state, Selection(tensor=c.id))))
    assert other is not None
    assert other.strip.count == 24 and other.lanes[0].reads.total == 24
    assert np.argwhere(other.grids[0].lit).tolist() == [[0, 1], [0, 3], [1, 1]]
