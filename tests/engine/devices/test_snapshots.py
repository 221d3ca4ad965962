"""Snapshots: what ours hold, what a file may hold, and a recorded trace run again."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.block import Block
from stridescope.engine.devices.memory_history import ACTIONS, MemoryHistory
from stridescope.engine.devices.out_of_memory import OutOfMemoryError
from stridescope.engine.devices.snapshot import memory_snapshot, snapshot
from stridescope.engine.devices.snapshot_file import SnapshotError, checked_snapshot, dump_snapshot, load_snapshot
from stridescope.engine.devices.snapshot_replay import SnapshotReplay
from stridescope.engine.devices.trace_replay import ScriptedGPU

MIB = 1 << 20
FOREVER = 1 << 40


def watched(total: int = 1 << 30, conf: str = "", context: str | None = "all", entries: int = FOREVER) -> ScriptedGPU:
    """A GPU whose memory history is on."""
    gpu = ScriptedGPU(total, AllocatorSettings(conf))
    gpu.allocator.log.history = MemoryHistory(context, entries, frozenset(), False)
    return gpu


def actions(gpu: ScriptedGPU) -> list[str]:
    history = gpu.allocator.log.history
    assert history is not None
    return [entry["action"] for entry in history.as_snapshot()]


def test_a_segment_in_a_snapshot() -> None:
    gpu = watched()
    block = gpu.allocator.malloc(600)
    (segment,) = memory_snapshot(gpu.allocator)
    assert list(segment) == [
        "device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type",
        "segment_pool_id", "is_expandable", "frames", "blocks",
    ]  # fmt: skip
    assert segment["segment_type"] == "small" and segment["requested_size"] == 600
    first, rest = segment["blocks"]
    assert first | {"frames": []} == {
        "address": block.address, "size": 1024, "requested_size": 600, "state": "active_allocated", "frames": [],
    }  # fmt: skip
    assert first["frames"][0]["name"] == "test_a_segment_in_a_snapshot" and first["frames"][0]["filename"] == __file__
    assert rest["state"] == "inactive" and rest["requested_size"] == 0


def test_the_actions_in_their_order() -> None:
    gpu = watched(64 * MIB)
    kept = gpu.allocator.malloc(3 * MIB)
    gpu.allocator.record_stream(kept, 1)
    gpu.set_busy(1, True)
    gpu.allocator.free(kept)
    with pytest.raises(OutOfMemoryError):
        gpu.allocator.malloc(80 * MIB)
    assert actions(gpu) == ["segment_alloc", "alloc", "free_requested", "free_completed", "segment_free", "oom"]
    history = gpu.allocator.log.history
    assert history is not None
    entries = history.as_snapshot()
    assert entries[1]["size"] == 3 * MIB and entries[5]["size"] == 80 * MIB and entries[5]["device_free"] == 64 * MIB
    assert all(entry["compile_context"] == "N/A" and entry["user_metadata"] == "" for entry in entries)


def test_a_snapshot_shows_up_in_the_next_one() -> None:
    gpu = watched()
    gpu.allocator.malloc(1)
    assert [entry["action"] for entry in snapshot([gpu.allocator])["device_traces"][0]] == ["segment_alloc", "alloc"]
    assert snapshot([gpu.allocator])["device_traces"][0][-1]["action"] == "snapshot"
    assert snapshot([gpu.allocator], include_traces=False)["device_traces"] == [[]]


@pytest.mark.parametrize(
    ("context", "on_alloc", "on_free", "on_block"),
    [
        (None, False, False, False),
        ("state", False, False, True),
        ("alloc", True, True, True),
        ("all", True, True, True),
    ],
)
def test_how_much_of_the_stack_is_kept(context: str | None, on_alloc: bool, on_free: bool, on_block: bool) -> None:
    gpu = watched(context=context)
    gpu.allocator.malloc(1)
    gpu.allocator.free(gpu.allocator.malloc(1))
    _, alloc, _, requested, _ = (snapshot([gpu.allocator]))["device_traces"][0]
    assert ("frames" in alloc, "frames" in requested) == (on_alloc, on_free)
    assert bool(memory_snapshot(gpu.allocator)[0]["blocks"][0]["frames"]) == on_block


def test_the_ring_keeps_the_last_entries() -> None:
    gpu = watched(entries=3)
    for _ in range(5):
        gpu.allocator.free(gpu.allocator.malloc(1))
    assert actions(gpu) == ["alloc", "free_requested", "free_completed"]


def busy_life(gpu: ScriptedGPU, seed: int, calls: int = 400) -> None:
    """A life with everything in it: streams, pools, cache flushes, failures."""
    chance, held = random.Random(seed), list[Block]()
    gpu.allocator.create_pool((0, 7))

    def take(size: int, stream: int) -> None:
        with contextlib.suppress(OutOfMemoryError):
            held.append(gpu.allocator.malloc(size, stream))

    for _ in range(calls):
        act = chance.random()
        if act < 0.5:
            size = chance.choice([chance.randint(1, 5000), chance.randint(1, 3 * MIB), chance.randint(MIB, 40 * MIB)])
            take(size, chance.choice([0, 0, 0, 1]))
        elif act < 0.85 and held:
            block = held.pop(chance.randrange(len(held)))
            if chance.random() < 0.2:
                gpu.allocator.record_stream(block, 2)
            gpu.allocator.free(block)
        elif act < 0.9:
            gpu.set_busy(2, chance.random() < 0.5)
        elif act < 0.93:
            gpu.allocator.empty_cache()
        elif act < 0.96:
            gpu.allocator.begin_allocate_to_pool((0, 7), lambda stream: True)
            take(chance.randint(1, 2 * MIB), 0)
            gpu.allocator.end_allocate_to_pool((0, 7))
            gpu.allocator.release_pool((0, 7))


def replayed(gpu: ScriptedGPU, path: Path, **changes: Any) -> dict[str, Any]:
    dump_snapshot(snapshot([gpu.allocator]), path)
    return SnapshotReplay(load_snapshot(path), 0, **changes).result()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("conf", ["", "roundup_power2_divisions:4", "expandable_segments:True"])
def test_every_allocation_of_a_recorded_life_gets_its_block_again(seed: int, conf: str, tmp_path: Path) -> None:
    gpu = watched(256 * MIB, conf)
    busy_life(gpu, seed)
    result = replayed(gpu, tmp_path / "life.pickle")
    assert result["differences"] == []
    assert result["same_block"] == result["allocations"] > 100
    assert result["replayed"] == result["recorded"]


@pytest.mark.parametrize("seed", range(6))
def test_a_trace_that_begins_in_the_middle_is_replayed_from_the_state_before_it(seed: int, tmp_path: Path) -> None:
    gpu = watched(1 << 32)
    busy_life(gpu, seed, 300)
    gpu.allocator.log.history = MemoryHistory("all", FOREVER, frozenset(), False)
    busy_life(gpu, seed + 100, 200)
    result = replayed(gpu, tmp_path / "life.pickle")
    assert result["same_block"] == result["allocations"] > 50


def test_with_other_options_the_same_requests_need_less(tmp_path: Path) -> None:
    gpu = watched(1 << 32)
    blocks = [gpu.allocator.malloc(11 * MIB - 512) for _ in range(8)]
    for block in blocks:
        gpu.allocator.free(block)
    gpu.allocator.malloc(60 * MIB)
    result = replayed(gpu, tmp_path / "life.pickle", conf="expandable_segments:True")
    assert result["replayed"]["peak_reserved"] < result["recorded"]["peak_reserved"]


def test_on_a_smaller_device_requests_fail(tmp_path: Path) -> None:
    gpu = watched()
    gpu.allocator.malloc(100 * MIB)
    result = replayed(gpu, tmp_path / "life.pickle", total=64 * MIB)
    assert result["replayed"]["out_of_memory"] == 1 and result["differences"][0]["replayed"] == "out of memory"


class Hostile:
    """A pickle of this runs a command when it is opened without care."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_would_execute_is_refused_unrun(tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    (tmp_path / "evil.pickle").write_bytes(pickle.dumps({"segments": [Hostile(trap)]}))
    with pytest.raises(SnapshotError, match=r"it wants to run (posix|nt)\.mkdir"):
        load_snapshot(tmp_path / "evil.pickle")
    assert not trap.exists()


def good() -> dict[str, Any]:
    gpu = watched()
    gpu.allocator.malloc(3 * MIB)
    return snapshot([gpu.allocator])


def test_every_cut_is_refused(tmp_path: Path) -> None:
    whole = pickle.dumps(good(), 4)
    for length in range(0, len(whole) - 1, 7):
        (tmp_path / "cut.pickle").write_bytes(whole[:length])
        with pytest.raises(SnapshotError) as caught:
            load_snapshot(tmp_path / "cut.pickle")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", range(200))
def test_no_flipped_byte_does_worse_than_a_refusal(seed: int, tmp_path: Path) -> None:
    chance, content = random.Random(seed), bytearray(pickle.dumps(good(), 4))
    for _ in range(3):
        content[chance.randrange(len(content))] = chance.randrange(256)
    (tmp_path / "flipped.pickle").write_bytes(content)
    try:
        found = load_snapshot(tmp_path / "flipped.pickle")
        for device in found.devices():
            SnapshotReplay(found, device)
    except (SnapshotError, OutOfMemoryError):
        pass


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cut short"),
        (b"[1, 2]", "no pickle"),
        (pickle.dumps(3), "no list of segments"),
        (pickle.dumps({"segments": 3}), "no list of segments"),
        (pickle.dumps({"segments": [3]}), "segment 0 is no dict"),
        (pickle.dumps({"segments": [{"address": "x"}]}), "segment 0 has no address that is int"),
        (pickle.dumps({"segments": [], "device_traces": [3]}), "device_traces are not lists"),
        (pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc"}]]}), "trace entry 0 has no size"),
        (pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "size": -1, "stream": 0}]]}), "negative"),
    ],
)
def test_foreign_files(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "foreign").write_bytes(content)
    with pytest.raises(SnapshotError, match=message):
        load_snapshot(tmp_path / "foreign")


def test_blocks_that_do_not_fill_their_segment() -> None:
    broken = good()
    broken["segments"][0]["blocks"].pop()
    with pytest.raises(SnapshotError, match="do not|add up to"):
        checked_snapshot(broken)


def test_files_of_older_versions_are_read() -> None:
    old = good()
    del old["allocator_settings"], old["external_annotations"]
    for entry in old["device_traces"][0]:
        del entry["pool_id"], entry["compile_context"], entry["user_metadata"]
    for segment in old["segments"]:
        del segment["segment_pool_id"], segment["is_expandable"]
    assert SnapshotReplay(checked_snapshot(old), 0).result()["same_block"] == 1
    assert checked_snapshot(old["segments"]).devices() == [0]


def test_skipped_actions_are_not_recorded() -> None:
    gpu = watched()
    gpu.allocator.log.history = MemoryHistory("all", FOREVER, frozenset(ACTIONS) - {"alloc"}, False)
    gpu.allocator.free(gpu.allocator.malloc(1))
    assert actions(gpu) == ["alloc"]


STRANGE: tuple[Any, ...] = (-1, 1 << 63, 1 << 70, "x", None, 3.5, [], {}, True, 512, 20 * MIB, (1, 2))


def disturb(chance: random.Random, found: Any) -> None:
    """Change one thing somewhere inside: take it out, put another in its place, or twice."""
    while isinstance(found, (dict, list)) and found:
        key = chance.choice(list(found)) if isinstance(found, dict) else chance.randrange(len(found))
        turn = chance.random()
        if turn < 0.15:
            del found[key]
            return
        if turn < 0.4 or not isinstance(found[key], (dict, list)):
            found[key] = chance.choice(STRANGE)
            return
        if turn < 0.5 and isinstance(found, list):
            found.insert(key, found[-1])
            return
        found = found[key]


@pytest.mark.parametrize("conf", ["", "expandable_segments:True"])
@pytest.mark.parametrize("seed", range(150))
def test_no_contradiction_does_worse_than_a_refusal(seed: int, conf: str) -> None:
    gpu = ScriptedGPU(128 * MIB, AllocatorSettings(conf))
    gpu.allocator.log.history = MemoryHistory("all", FOREVER, frozenset(), False)
    held = [gpu.allocator.malloc(size) for size in (600, 3 * MIB, 11 * MIB)]
    gpu.allocator.record_stream(held[1], 1)
    for block in held[1:]:
        gpu.allocator.free(block)
    gpu.allocator.malloc(60 * MIB)
    found = copy.deepcopy(snapshot([gpu.allocator]))
    disturb(random.Random(seed), found)
    try:
        checked = checked_snapshot(found)
        for device in checked.devices():
            SnapshotReplay(checked, device).result()
    except SnapshotError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda s: s["allocator_settings"].update(PYTORCH_CUDA_ALLOC_CONF="foo:1"),
            "its options 'foo:1' are none",
        ),
        (lambda s: s["segments"][0].update(device="0"), "segment 0 has a device that is no number"),
        (lambda s: s["device_traces"][0][0].pop("addr"), "trace entry 0 has no addr that is int"),
        (lambda s: s["segments"].append(dict(s["segments"][0], total_size=1 << 50, blocks=[BIG])), "memory of any GPU"),
    ],
)
def test_what_cannot_be_replayed_is_named(change: Any, message: str) -> None:
    found = copy.deepcopy(good())
    change(found)
    with pytest.raises(SnapshotError, match=message):
        SnapshotReplay(checked_snapshot(found), 0)


BIG = {"size": 1 << 50, "state": "inactive"}
