"""Rounding of requests, and the segments opened for them."""

from __future__ import annotations

import pytest

from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.block_sizes import round_size, segment_size

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "rounded"),
    [
        (1, 512),
        (511, 512),
        (512, 512),
        (513, 1024),
        (1024, 1024),
        (MIB, MIB),
        (MIB + 1, MIB + 512),
        (10 * MIB - 1, 10 * MIB),
    ],
)
def test_rounds_up_to_512(size: int, rounded: int) -> None:
    assert round_size(size, AllocatorSettings()) == rounded


@pytest.mark.parametrize(
    ("divisions", "size", "rounded"),
    [
        (4, 1200, 1536),  # not above 512 x 4: plain rounding
        (4, 2048, 2048),
        (4, 2049, 2560),
        (4, 5 * MIB + 1, 6 * MIB),
        (4, 4 * MIB, 4 * MIB),
        (8, 33 * MIB, 36 * MIB),
        (2, 3000, 3072),
        (1, 5 * MIB + 1, 5 * MIB + 512),
        (1 << 20, 5 * MIB + 1, 5 * MIB + 512),
    ],
)
def test_rounds_up_to_a_division_of_the_power_of_two(divisions: int, size: int, rounded: int) -> None:
    assert round_size(size, AllocatorSettings(f"roundup_power2_divisions:{divisions}")) == rounded


@pytest.mark.parametrize(
    ("size", "rounded"), [(MIB + 1, 1572864), (3 * MIB, 3 * MIB), (5 * MIB, 5 * MIB), (40 << 30, 48 << 30)]
)
def test_each_interval_has_its_own_divisions(size: int, rounded: int) -> None:
    settings = AllocatorSettings("roundup_power2_divisions:[1:2,4:8,>:2]")
    assert round_size(size, settings) == rounded


@pytest.mark.parametrize(
    ("rounded", "segment"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 512, 12 * MIB),
        (21 * MIB, 22 * MIB),
    ],
)
def test_segments(rounded: int, segment: int) -> None:
    assert segment_size(rounded, AllocatorSettings()) == segment


def test_only_the_middle_class_follows_large_segment_size() -> None:
    settings = AllocatorSettings("large_segment_size_mb:30")
    assert [segment_size(size * MIB, settings) for size in (1, 2, 9, 12)] == [2 * MIB, 30 * MIB, 30 * MIB, 12 * MIB]
