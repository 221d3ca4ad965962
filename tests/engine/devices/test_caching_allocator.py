"""The rules of the caching allocator, one scenario each, seen through a trace replay."""

from __future__ import annotations

import pytest
from scenarios import layout, run

SCENARIOS = [
    # rule, calls, options, what is left
    ("the smallest block", "a=1", {}, ["small 2M at 0 [A512 -2096640]"]),
    ("small requests share a segment", "a=512; b=513; c=1K", {}, ["small 2M at 0 [A512 A1K A1K -2094592]"]),
    ("a full small segment", "a=1M; b=1M; c=1", {}, ["small 2M at 0 [A1M A1M]", "small 2M at 2M [A512 -2096640]"]),
    ("above 1 MiB is large", "a=1M+1", {}, ["large 20M at 0 [A1049088 -19922432]"]),
    ("just below 10 MiB shares 20", "a=10M-512", {}, ["large 20M at 0 [A10485248 -10486272]"]),
    ("10 MiB - 1 rounds to 10 MiB, made to measure", "a=10M-1", {}, ["large 10M at 0 [A10M]"]),
    ("a rest of 1 MiB stays", "a=11M", {}, ["large 12M at 0 [A12M]"]),
    ("a rest above 1 MiB is cut", "a=11M-512", {}, ["large 12M at 0 [A11533824 -1049088]"]),
    ("best fit", "a=30M; b=14M; c=24M; free a; free b; free c; d=13M", {}, [
        "large 30M at 0 [-30M]", "large 14M at 30M [A14M]", "large 24M at 44M [-24M]"]),
    ("equal sizes: the lowest address", "a=12M; b=12M; c=12M; free c; free a; d=12M", {}, [
        "large 12M at 0 [A12M]", "large 12M at 12M [A12M]", "large 12M at 24M [-12M]"]),
    ("freed neighbours merge, both sides", "a=2M; b=3M; c=4M; d=5M; free a; free c; free b", {}, [
        "large 20M at 0 [-9M A5M -6M]"]),
    ("a hole is cut from its low end", "a=2M; b=8M; c=2M; free b; d=3M", {}, ["large 20M at 0 [A2M A3M -5M A2M -8M]"]),
    ("streams do not share", "a=12M; free a; b=12M@1", {}, ["large 12M at 0 [-12M]", "large 12M s1 at 12M [A12M]"]),
    ("slack is handed out again whole", "a=11M; free a; b=11776K", {}, ["large 12M at 0 [A12M]"]),
    ("empty_cache gives back whole segments only", "a=3M; b=12M; c=100; free b; free c; empty", {}, [
        "large 20M at 0 [A3M -17M]"]),
    ("nothing is asked for 0 bytes", "a=0; free a", {}, []),
    ("what was never had is not freed", "free a; record a 1", {}, []),
    # limits and retries
    ("the cache is released before giving up", "a=60M; free a; b=70M", {"total": "100M"}, ["large 70M at 60M [A70M]"]),
    ("a cached segment in use stays", "a=9M; b=9M; free b; c=90M", {"total": "100M"}, ["large 20M at 0 [A9M -11M]"]),
    ("the fraction counts the segment", "a=1", {"total": "100M", "fraction": 0.01}, []),
    ("the fraction counts what is cached", "a=30M; free a; b=40M", {"total": "100M", "fraction": 0.5}, [
        "large 40M at 30M [A40M]"]),
    # max_split_size
    ("small requests leave oversize blocks alone", "a=40M; free a; b=12M", {"conf": "max_split_size_mb:32"}, [
        "large 40M at 0 [-40M]", "large 12M at 40M [A12M]"]),
    ("an oversize block goes whole to an oversize request", "a=60M; free a; b=42M", {"conf": "max_split_size_mb:32"}, [
        "large 60M at 0 [A60M]"]),
    ("unless it is 20 MiB too large", "a=60M; free a; b=40M", {"conf": "max_split_size_mb:32"}, [
        "large 60M at 0 [-60M]", "large 40M at 60M [A40M]"]),
    ("or what max_non_split_rounding says", "a=60M; free a; b=40M",
        {"conf": "max_split_size_mb:32,max_non_split_rounding_mb:21"}, ["large 60M at 0 [A60M]"]),
    ("an oversize block that may not serve is released", "a=60M; b=12M; free b; free a; c=35M",
        {"conf": "max_split_size_mb:32", "total": "100M"}, ["large 12M at 60M [-12M]", "large 36M at 72M [A36M]"]),
    ("the oversize blocks of other streams are not", "a=40M; b=60M; free a; free b; c=34M@1",
        {"conf": "max_split_size_mb:32", "total": "110M"}, ["large 34M s1 at 100M [A34M]"]),
    ("oversize blocks are released largest first", "a=40M; b=50M; c=60M; free a; free b; free c; d=90M",
        {"conf": "max_split_size_mb:32", "total": "170M"}, ["large 40M at 0 [-40M]", "large 90M at 150M [A90M]"]),
    # garbage collection
    ("garbage is what is at least as old as the average", "a=30M; b=20M; free a; c=25M@1; free b; d=26M@1",
        {"conf": "garbage_collection_threshold:0.5", "total": "200M", "fraction": 0.6}, [
        "large 20M at 30M [-20M]", "large 26M s1 at 50M [A26M]", "large 26M s1 at 76M [A26M]"]),
    ("garbage is left alone under the threshold", "a=30M; free a; b=20M@1",
        {"conf": "garbage_collection_threshold:0.5", "total": "200M", "fraction": 0.6}, [
        "large 30M at 0 [-30M]", "large 20M s1 at 30M [A20M]"]),
    # large_segment_size and division
    ("a larger middle segment", "a=3M; b=12M", {"conf": "large_segment_size_mb:32"}, [
        "large 32M at 0 [A3M A12M -17M]"]),
    ("rounding to divisions", "a=1200; b=2049; c=5M+1", {"conf": "roundup_power2_divisions:4"}, [
        "small 2M at 0 [A1536 A2560 -2044K]", "large 20M at 2M [A6M -14M]"]),
    # other streams
    ("a pending block is neither free nor merged", "a=2M; b=3M; record a 1; busy 1 1; free a; free b", {}, [
        "large 20M at 0 [P2M -18M]"]),
    ("its own stream is no other stream", "a=12M@1; record a 1; busy 1 1; free a", {}, ["large 12M s1 at 0 [-12M]"]),
    ("an idle stream's event is done at once, seen at the next request", "a=12M; record a 1; free a", {}, [
        "large 12M at 0 [P12M]"]),
    ("the next request takes it back", "a=12M; record a 1; free a; b=12M", {}, ["large 12M at 0 [A12M]"]),
    ("both streams must be done", "a=12M; record a 1; record a 2; busy 1 1; busy 2 1; free a; busy 1 0; b=12M", {}, [
        "large 12M at 0 [P12M]", "large 12M at 12M [A12M]"]),
    ("no event overtakes an earlier one of its stream",
        "a=12M; b=14M; record a 1; record b 1; busy 1 1; free a; busy 1 0; busy 1 1; free b; c=1", {}, [
        "large 12M at 0 [-12M]", "large 14M at 12M [P14M]", "small 2M at 26M [A512 -2096640]"]),
    ("empty_cache waits", "a=12M; record a 1; busy 1 1; free a; empty", {}, []),
    ("a retry waits", "a=60M; record a 1; busy 1 1; free a; b=70M", {"total": "100M"}, ["large 70M at 60M [A70M]"]),
    ("but the pool is not searched again", "a=9M; b=9M; record b 1; busy 1 1; free b; c=8M", {"total": "22M"}, [
        "large 20M at 0 [A9M -11M]"]),
    # private pools
    ("a pool has its own segments", "a=3M; pool p; enter p; b=3M; exit p; c=3M", {}, [
        "large 20M at 0 [A3M A3M -14M]", "large 20M pool1 at 20M [A3M -17M]"]),
    ("a live pool keeps its cache", "pool p; enter p; b=3M; exit p; free b; empty", {}, [
        "large 20M pool1 at 0 [-20M]"]),
    ("a deleted one does not", "pool p; enter p; b=3M; exit p; free b; delpool p", {}, []),
    ("unless a block lives on", "pool p; enter p; b=3M; exit p; delpool p; empty", {}, [
        "large 20M pool1 at 0 [A3M -17M]"]),
    ("then a later empty_cache takes it", "pool p; enter p; b=3M; exit p; delpool p; free b; empty", {}, []),
    ("deleted while it is open, it stays until it is closed", "pool p; enter p; b=3M; free b; delpool p; c=3M", {}, [
        "large 20M pool1 at 0 [A3M -17M]"]),
    ("the innermost pool wins", "pool p; pool q; enter p; enter q; b=20M; exit q; c=20M; exit p; d=20M", {}, [
        "large 20M pool2 at 0 [A20M]", "large 20M pool1 at 20M [A20M]", "large 20M at 40M [A20M]"]),
    ("no_split gives whole segments", "pool p no_split; enter p; a=3M; b=100; exit p", {}, [
        "large 20M pool1 at 0 [A20M]", "small 2M pool1 at 20M [A2M]"]),
    ("use_on_oom lends before anything is released",
        "pool p use_on_oom; enter p; a=60M; exit p; free a; c=20M; free c; b=40M", {"total": "100M"}, [
        "large 60M pool1 at 0 [A40M -20M]", "large 20M at 60M [-20M]"]),
    ("a deleted pool lends no more",
        "pool p use_on_oom; enter p; a=40M; x=30M; exit p; free a; delpool p; b=40M", {"total": "80M"}, [
        "large 30M pool1 at 40M [A30M]", "large 40M at 70M [A40M]"]),
    ("a retry of a pool releases the default cache", "a=60M; free a; pool p; enter p; b=70M; exit p",
        {"total": "100M"}, ["large 70M pool1 at 60M [A70M]"]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "calls", "options", "left"), SCENARIOS, ids=[scenario[0] for scenario in SCENARIOS])
def test_rule(rule: str, calls: str, options: dict[str, str], left: list[str]) -> None:
    assert layout(run(calls, **options)) == left


@pytest.mark.parametrize(
    ("calls", "options", "counted"),
    [
        ("a=60M; free a; b=70M", {"total": "100M"}, {
            "num_alloc_retries": 1, "num_sync_all_streams": 1, "num_device_free": 1}),
        ("a=60M; b=50M", {"total": "100M"}, {"num_alloc_retries": 1, "num_ooms": 1, "num_device_free": 0}),
        ("a=40M; free a; b=12M", {"conf": "max_split_size_mb:32"}, {
            "oversize_allocations.peak": 1, "oversize_allocations.freed": 1, "oversize_segments.current": 1}),
        ("a=60M; free a; b=35M", {"conf": "max_split_size_mb:32", "total": "80M"}, {
            "num_alloc_retries": 0, "num_sync_all_streams": 0, "oversize_segments.freed": 1}),
        ("a=3M; b=1K; free a; reset_peak", {}, {
            "allocated_bytes.all.peak": 1024, "allocated_bytes.all.freed": 3 << 20, "active.large_pool.peak": 0}),
        ("a=3M; b=1K; free a; reset_acc; free b", {}, {
            "allocated_bytes.all.allocated": 0, "allocated_bytes.all.freed": 1024, "num_device_alloc": 0}),
        ("a=2M; b=3M; c=4M; d=5M; free a; free c", {}, {
            "inactive_split.all.current": 3, "inactive_split_bytes.all.current": 12 << 20}),
        ("pool p; enter p; a=3M; exit p", {}, {
            "reserved_bytes.all.current": 20 << 20, "segment.large_pool.current": 1}),
    ],
)  # fmt: skip
def test_what_is_counted(calls: str, options: dict[str, str], counted: dict[str, int]) -> None:
    stats = run(calls, **options).allocator.stats.flat()
    assert {key: stats[key] for key in counted} == counted


def test_the_flat_statistics_have_pytorchs_keys_in_order() -> None:
    stats = run("a=1; pool p; enter p; b=3M; exit p").allocator.stats.flat()
    plain = [key for key in stats if not key.startswith("reserved_bytes_by_private_pools")]
    assert len(plain) == 123 and list(stats) == sorted(stats)
    assert stats["reserved_bytes_by_private_pools.0_1.large_pool.current"] == 20 << 20
    assert stats["max_split_size"] == -1


@pytest.mark.parametrize("address", [0x3039, 0x2000_0000_0200])
def test_freeing_what_was_not_handed_out(address: int) -> None:
    replay = run("a=1K; b=512; free b")
    with pytest.raises(RuntimeError, match=f"^invalid device pointer: {address:#x}$"):
        replay.allocator.free_address(address)


def test_freeing_twice() -> None:
    replay = run("a=1K")
    block = replay.blocks["a"]
    replay.allocator.free(block)
    with pytest.raises(RuntimeError, match="invalid device pointer: 0x"):
        replay.allocator.free(block)


def test_free_memory_callbacks_run_before_the_device_is_asked() -> None:
    replay = run("a=12M")

    def let_go() -> bool:
        replay.free("a")
        return True

    replay.allocator.free_memory_callbacks.append(let_go)
    replay.alloc("b", 12 << 20, 0)
    assert layout(replay) == ["large 12M at 0 [A12M]"]


def test_without_caching_no_statistic_moves() -> None:
    replay = run("a=1")
    before = replay.allocator.stats.flat()
    replay.allocator.caching_enabled = False
    block = replay.allocator.malloc(1000)
    assert replay.device.memory_info()[0] == (1022 << 20) - 1000
    replay.allocator.free(block)
    assert replay.allocator.stats.flat() == before and replay.device.memory_info()[0] == 1022 << 20


class FreedDuringMalloc:
    """Frees a block when a request is told of, as a finaliser may that Python runs in the middle of a call."""

    def __init__(self) -> None:
        self.replay = run("a=3M; b=3M")
        self.replay.allocator.log.journal.emit = self

    def __call__(self, wire: object) -> None:
        self.replay.free("a")


def test_a_free_in_the_middle_of_a_request_waits_for_its_end() -> None:
    during = FreedDuringMalloc()
    during.replay.alloc("c", 3 << 20, 0)
    during.replay.allocator.log.journal.emit = None
    assert layout(during.replay) == ["large 20M at 0 [-3M A3M A3M -11M]"]
