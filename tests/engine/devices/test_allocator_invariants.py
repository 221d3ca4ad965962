"""Random sequences of allocator calls keep every invariant, and the recorded state equals the real one."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from invariants import check, check_fold

from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.block import Block
from stridescope.engine.devices.out_of_memory import OutOfMemoryError
from stridescope.engine.devices.trace_replay import ScriptedGPU
from stridescope.engine.events import Journal, Wire
from stridescope.engine.recording.allocator_state import AllocatorState

MIB = 1 << 20
SIZES = st.one_of(
    st.integers(1, 4096),
    st.integers(1, 3 * MIB),
    st.integers(MIB, 12 * MIB),
    st.sampled_from([512, MIB, MIB + 1, 10 * MIB - 512, 10 * MIB, 20 * MIB, 36 * MIB]),
)
STREAMS = st.integers(0, 2)
CALLS = st.one_of(
    st.tuples(st.just("alloc"), SIZES, STREAMS),
    st.tuples(st.just("free"), st.integers(0, 1 << 30)),
    st.tuples(st.just("record"), st.integers(0, 1 << 30), STREAMS),
    st.tuples(st.just("busy"), st.integers(1, 2), st.booleans()),
    st.tuples(st.just("empty")),
    st.tuples(st.just("enter"), st.integers(0, 1)),
    st.tuples(st.just("exit")),
    st.tuples(st.just("settings"), st.sampled_from(["expandable_segments:True", "expandable_segments:False"])),
)
CONFS = st.sampled_from(
    [
        "",
        "max_split_size_mb:20",
        "max_split_size_mb:32,max_non_split_rounding_mb:24",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[1:2,4:8,>:4]",
        "garbage_collection_threshold:0.4",
        "expandable_segments:True",
        "expandable_segments:True,max_split_size_mb:40",
        "large_segment_size_mb:12",
    ]
)


@dataclasses.dataclass
class Machine:
    """An allocator under test, with a listener that folds its events."""

    gpu: ScriptedGPU
    held: list[Block] = dataclasses.field(default_factory=list)
    entered: list[tuple[int, int]] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.allocator = self.gpu.allocator
        self.state = AllocatorState()
        journal, self.steps = Journal(), 0
        journal.emit = self.hear
        self.allocator.log.journal = journal
        for number, no_split, lends in ((1, False, True), (2, True, False)):
            self.allocator.create_pool((0, number), no_split, lends)

    def hear(self, wire: Wire) -> None:
        self.state.apply(self.steps, wire)
        self.steps += 1

    def call(self, name: str, *arguments: Any) -> None:
        getattr(self, name)(*arguments)

    def alloc(self, size: int, stream: int) -> None:
        try:
            block = self.allocator.malloc(size, stream)
        except OutOfMemoryError as error:
            assert str(error).startswith("CUDA out of memory. Tried to allocate ")
            return
        assert block.size >= size and block.requested_size == size and block.stream == stream
        self.held.append(block)

    def free(self, which: int) -> None:
        if self.held:
            self.allocator.free(self.held.pop(which % len(self.held)))

    def record(self, which: int, stream: int) -> None:
        if self.held:
            self.allocator.record_stream(self.held[which % len(self.held)], stream)

    def busy(self, stream: int, busy: bool) -> None:
        self.gpu.set_busy(stream, busy)

    def empty(self) -> None:
        self.allocator.empty_cache()

    def enter(self, which: int) -> None:
        self.entered.append((0, which + 1))
        self.allocator.begin_allocate_to_pool(self.entered[-1], lambda stream: True)

    def exit(self) -> None:
        if self.entered:
            pool_id = self.entered.pop()
            self.allocator.end_allocate_to_pool(pool_id)
            self.allocator.release_pool(pool_id)

    def settings(self, text: str) -> None:
        self.allocator.settings.expandable_segments = text.endswith("True")


@settings(max_examples=300, deadline=None)
@given(
    CONFS, st.sampled_from([64 * MIB, 128 * MIB, 1024 * MIB]), st.sampled_from([1.0, 0.7]), st.lists(CALLS, max_size=60)
)
def test_every_sequence(conf: str, total: int, fraction: float, calls: list[tuple[Any, ...]]) -> None:
    machine = Machine(ScriptedGPU(total, AllocatorSettings(conf)))
    machine.allocator.set_memory_fraction(fraction)
    for call in calls:
        machine.call(*call)
        check(machine.allocator)
        check_fold(machine.state, machine.allocator)
    limit = machine.allocator.source.limit
    assert machine.allocator.stats.all.reserved_bytes.peak <= (total if limit is None else limit) + 20 * MIB


@settings(max_examples=50, deadline=None)
@given(CONFS, st.lists(CALLS, max_size=60))
def test_everything_can_be_given_back(conf: str, calls: list[tuple[Any, ...]]) -> None:
    machine = Machine(ScriptedGPU(512 * MIB, AllocatorSettings(conf)))
    for call in calls:
        machine.call(*call)
    while machine.held:
        machine.free(0)
    while machine.entered:
        machine.exit()
    for pool_id in ((0, 1), (0, 2)):
        machine.allocator.release_pool(pool_id)
    machine.allocator.empty_cache()
    assert machine.allocator.stats.all.reserved_bytes.current == 0
    assert machine.gpu.memory_info() == (512 * MIB, 512 * MIB)
    assert machine.state.segments == {} and machine.state.blocks == {}
