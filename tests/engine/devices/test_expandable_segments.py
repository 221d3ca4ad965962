"""Expandable segments: one range that grows and shrinks page by page."""

from __future__ import annotations

import pytest
from scenarios import layout, run

from stridescope.engine.devices.allocator_settings import AllocatorSettings

ON = "expandable_segments:True"

SCENARIOS = [
    ("it grows in pages of 20 MiB", "a=3M; b=30M", ON, ["large 40M at V0 [A3M A30M -7M]"]),
    ("small requests have a range of their own, in pages of 2 MiB", "a=3M; b=1000", ON, [
        "large 20M at V0 [A3M -17M]", "small 2M at V2048M [A1K -2047K]"]),
    ("the free tail is extended", "a=15M; b=4M; free b; c=25M", ON, ["large 40M at V0 [A15M A25M]"]),
    ("rests are cut from 512 bytes on", "a=20M-512; b=512", ON, [
        "large 20M at V0 [A20971008 -512]",
        "small 2M at V2048M [A512 -2096640]"]),
    ("whole pages inside a free block go back", "a=10M; b=45M; c=5M; free b; empty", ON, [
        "large 20M at V0 [A10M -10M]", "large 20M at V40M [-15M A5M]"]),
    ("a hole is filled again from its low end", "a=20M; b=40M; c=20M; free b; empty; d=25M", ON, [
        "large 80M at V0 [A20M A25M -15M A20M]"]),
    ("a closed hole is preferred to the growing tail", "a=30M; b=20M; c=4M; free a; free c; d=3M", ON, [
        "large 60M at V0 [A3M -27M A20M -10M]"]),
    ("an empty range is given back, the next lies elsewhere", "a=3M; free a; empty; b=3M", ON, [
        "large 20M at V2048M [A3M -17M]"]),
    ("each stream has its own range", "a=3M; b=3M@1", ON, [
        "large 20M at V0 [A3M -17M]", "large 20M s1 at V2048M [A3M -17M]"]),
    ("larger pages", "a=3M", f"{ON},large_segment_size_mb:30", ["large 30M at V0 [A3M -27M]"]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "calls", "conf", "left"), SCENARIOS, ids=[scenario[0] for scenario in SCENARIOS])
def test_rule(rule: str, calls: str, conf: str, left: list[str]) -> None:
    assert layout(run(calls, conf=conf)) == left


def test_one_mapping_call_counts_once_and_no_segment_is_counted() -> None:
    stats = run("a=70M; b=1", conf=ON).allocator.stats.flat()
    assert (stats["num_device_alloc"], stats["segment.all.current"], stats["reserved_bytes.all.current"]) == (
        2,
        0,
        82 << 20,
    )
    assert stats["inactive_split.all.current"] == 0


def test_a_page_that_cannot_be_had_fails_the_request_and_returns_its_pages() -> None:
    replay = run("a=15M; b=70M", total="64M", conf=ON)
    assert replay.addresses["b"] == "oom"
    assert layout(replay) == ["large 20M at V0 [A15M -5M]"] and replay.device.memory_info()[0] == 44 << 20


def test_switched_off_its_blocks_rest() -> None:
    replay = run("a=3M; free a", conf=ON)
    replay.allocator.settings.parse("expandable_segments:False")
    replay.alloc("b", 3 << 20, 0)
    assert layout(replay) == ["large 20M at 0 [A3M -17M]", "large 20M at V0 [-20M]"]


def test_a_pool_with_an_allocator_of_its_own_does_not_expand() -> None:
    class Elsewhere:
        given: list[int] = []

        def malloc(self, size: int, device: int, stream: int) -> int:
            return 0x1000_0000

        def free(self, address: int, size: int, device: int, stream: int) -> None:
            self.given.append(address)

    replay = run("a=1", conf=ON)
    replay.allocator.create_pool((0, 9), allocator=Elsewhere())
    replay.allocator.begin_allocate_to_pool((0, 9), lambda stream: True)
    block = replay.allocator.malloc(3 << 20)
    assert block.address == 0x1000_0000 and block.expandable is None
    replay.allocator.end_allocate_to_pool((0, 9))
    for _ in range(2):
        replay.allocator.release_pool((0, 9))
    replay.allocator.free(block)
    replay.allocator.empty_cache()
    assert Elsewhere.given == [0x1000_0000]


def test_the_limit_counts_the_segment_size_for_expandable_ones_too() -> None:
    assert run("a=1", total="100M", conf=ON, fraction=0.01).addresses == {"a": "oom"}
    assert AllocatorSettings(ON).expandable_segments
