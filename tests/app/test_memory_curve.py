"""Memory over steps: both series can be read, whatever their sizes, with round sizes beside them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stridescope.app.panels.allocator_model import Curve
from stridescope.app.panels.memory_curve import MOST_TICKS, scales

KIB, MIB = 1 << 10, 1 << 20


def curve(allocated: list[int], reserved: list[int]) -> Curve:
    steps = np.arange(len(allocated))
    return Curve(steps, np.array(allocated, int), np.array(reserved, int), 0, max(len(steps) - 1, 1), ())


@pytest.mark.parametrize(
    ("allocated", "reserved", "area", "band"),
    [
        ([0, 6 * KIB, 12 * KIB], [0, 2 * MIB, 2 * MIB], 12 * KIB, 2 * MIB),  # a lesson: kibibytes in one segment
        ([0, 30 * MIB, 12 * MIB], [0, 40 * MIB, 40 * MIB], 40 * MIB, 0),
        ([0, 0], [0, 20 * MIB], 1, 20 * MIB),
        ([], [], 1, 0),
    ],
)
def test_what_is_reserved_never_presses_what_is_allocated_flat(
    allocated: list[int], reserved: list[int], area: int, band: int
) -> None:
    found = scales(curve(allocated, reserved))
    assert (found.area, found.band) == (area, band)


def test_the_axis_has_round_sizes() -> None:
    assert scales(curve([12 * KIB], [12 * KIB])).ticks == [0, 4 * KIB, 8 * KIB, 12 * KIB]


@given(st.integers(1, 1 << 40))
def test_the_axis_is_never_crowded_nor_empty(top: int) -> None:
    ticks = scales(curve([top], [top])).ticks
    assert 2 <= len(ticks) <= MOST_TICKS
    assert ticks[0] == 0 and ticks[-1] > top / 2
