"""The state at a step is the same from wherever it is reached."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from conftest import Record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streams import ANY_EVENTS, Run, exactly, seen

from stridescope.engine.events import (
    BackwardBegan,
    BackwardEnded,
    BlockAllocated,
    ChildSet,
    DependenciesCounted,
    Event,
    ExceptionRaised,
    ForwardBegan,
    ForwardEnded,
    FrameEntered,
    FrameLeft,
    GradAccumulated,
    GradFnSet,
    GradientSent,
    KeysChosen,
    LineReached,
    ModeSet,
    ModuleFreed,
    ModuleMade,
    ModuleNamed,
    NameBound,
    NameUnbound,
    NodeBegan,
    NodeEnded,
    NodeMade,
    NodeReady,
    OpBegan,
    OpEnded,
    ParameterSet,
    PartRemoved,
    SavedFreed,
    ScriptEnded,
    SegmentAllocated,
    StorageFreed,
    StorageMade,
    StorageResized,
    StorageSummarised,
    StorageWritten,
    TensorFreed,
    TensorMade,
    TensorSaved,
    VersionBumped,
)
from stridescope.engine.recording.machine import Machine
from stridescope.engine.recording.model import Span, State
from stridescope.engine.recording.state import advance


def folded(events: Sequence[Event]) -> State:
    """The state after all events, folded in one go without any recording."""
    machine = Machine()
    advance(machine, [event.pack() for event in events])
    return machine.snapshot()


@pytest.mark.parametrize("seed", range(4))
def test_forward_backward_and_jumping_agree(record: Record, seed: int) -> None:
    events = Run(seed).of_length(6000)
    chooser = random.Random(seed)
    recording = record(events, flushes=sorted(chooser.sample(range(6000), 5)))
    assert recording.steps == 6000
    steps = sorted(chooser.sample(range(6000), 40))
    expected = {step: seen(folded(events[: step + 1])) for step in steps}
    for order in (steps, steps[::-1], chooser.sample(steps, 40)):
        assert [step for step in order if seen(recording.state(step)) != expected[step]] == []


def test_neighbours_agree_both_ways(record: Record) -> None:
    events = Run(9).of_length(1500)
    recording = record(events)
    machine, forward = Machine(), {}
    for step, event in enumerate(events):
        advance(machine, [event.pack()])
        forward[step] = seen(machine.snapshot())
    assert [step for step in range(1500) if seen(recording.state(step)) != forward[step]] == []
    assert [step for step in reversed(range(1500)) if seen(recording.state(step)) != forward[step]] == []


def test_a_state_that_was_handed_out_never_changes(record: Record) -> None:
    recording = record(Run(3).of_length(3000))
    kept = {step: recording.state(step) for step in range(0, 3000, 150)}
    before = {step: seen(state) for step, state in kept.items()}
    for step in random.Random(0).sample(range(3000), 60):
        recording.state(step)
    assert {step: seen(state) for step, state in kept.items()} == before


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=ANY_EVENTS, cuts=st.lists(st.integers(0, 40), max_size=3))
def test_any_events_at_all_can_be_recorded_and_walked(record: Record, events: list[Event], cuts: list[int]) -> None:
    with record(events, flushes=[cut for cut in cuts if cut < len(events)]) as recording:
        assert [exactly(event.pack()) for event in map(recording.event, range(len(events)))] == [
            exactly(event.pack()) for event in events
        ]
        for step in range(-1, len(events)):
            assert recording.state(step).step == step


# ---- what each event does ----------------------------------------------------------------------------------------

X = TensorMade(1, 2, (2, 3), (3, 1), 0, "float32", 0, 7, True)
MADE = [StorageMade(2, 8, "cpu", 64), X]


def test_a_tensor_lives_from_made_to_freed() -> None:
    state = folded(MADE)
    assert state.tensors[1].sizes == (2, 3) and state.tensors[1].born == 1 and state.tensors[1].requires_grad
    assert folded([*MADE, TensorFreed(1), StorageFreed(2)]).tensors == {}
    assert folded([*MADE, TensorFreed(1), StorageFreed(2)]).storages == {}


def test_views_share_a_version_and_later_views_see_it() -> None:
    view = TensorMade(3, 2, (3,), (1,), 0, "float32", 1, 7, False)
    other = TensorMade(4, 2, (3,), (1,), 0, "float32", 1, 7, False)
    state = folded([*MADE, view, VersionBumped(7, 4), other])
    assert [state.tensors[tensor].version for tensor in (1, 3, 4)] == [4, 4, 4]


def test_a_version_outlives_its_tensors_as_long_as_the_storage() -> None:
    again = TensorMade(5, 2, (3,), (1,), 0, "float32", 0, 7, False)
    assert folded([*MADE, VersionBumped(7, 2), TensorFreed(1), again]).tensors[5].version == 2


def test_writes_patch_the_values() -> None:
    events = [*MADE, StorageWritten(2, 0, b"abcdefgh"), StorageWritten(2, 2, b"XY"), StorageWritten(2, 7, b"Z!")]
    assert folded(events).storages[2].values == b"abXYefgZ"
    assert folded(events).storages[2].written == 4
    assert folded([*events, StorageResized(2, 4, 64)]).storages[2].values == b"abXY"
    assert folded([*MADE, StorageWritten(2, 6, b"!")]).storages[2].values == b"\0\0\0\0\0\0!\0"


def test_many_small_writes_stay_shallow() -> None:
    writes = [StorageWritten(2, step % 8, bytes([step % 256])) for step in range(5000)]
    assert folded([*MADE, *writes]).storages[2].values == bytes(step % 256 for step in range(4992, 5000))


def test_a_summary_takes_the_place_of_values() -> None:
    summary = StorageSummarised(2, "float32", -1.0, 2.0, 0.5, 1, 2, (3, 4))
    storage = folded([*MADE, StorageWritten(2, 0, b"abcdefgh"), summary]).storages[2]
    assert storage.values is None and storage.summary is not None
    assert storage.summary["minimum"] == -1.0 and storage.summary["histogram"] == (3, 4)


def test_names_are_innermost_first_and_go_with_their_frame() -> None:
    events = [
        FrameEntered(1, 0, 1, "<module>", 1),
        *MADE,
        NameBound(1, "x", 1, ""),
        FrameEntered(2, 1, 1, "f", 5),
        NameBound(2, "inner", 1, ""),
    ]
    assert folded(events).tensors[1].names == ("inner", "x")
    after = folded([*events, FrameLeft(2)])
    assert after.tensors[1].names == ("x",) and (after.source, after.line) == (1, 1)
    assert folded([*events, FrameLeft(2), NameBound(1, "x", 0, "3")]).tensors[1].names == ()


def test_ops_nest_and_the_last_one_stays() -> None:
    outer = OpBegan("aten::linear", (1,), (None, (2,)), 1, 1, 3, 4, 3, 9)
    inner = OpBegan("aten::addmm", (1,), (), 1, 1, 3, 4, 3, 9)
    events: list[Event] = [outer, KeysChosen(("Autograd",)), inner, X]
    state = folded(events)
    assert state.op is not None and state.op.op == "aten::addmm" and state.op.running
    assert [op.op for op in state.ops] == ["aten::linear", "aten::addmm"]
    assert state.tensors[1].op == "aten::addmm"
    ended = folded([*events, OpEnded("aten::addmm", (1,)), OpEnded("aten::linear", (1,))])
    assert ended.op is not None and (ended.op.op, ended.op.running) == ("aten::linear", False)
    assert ended.op.keys == ("Autograd",) and ended.op.outputs == (1,) and ended.op.span == Span(1, 3, 4, 3, 9)


def test_an_exception_stands_until_it_is_caught() -> None:
    raised = ExceptionRaised(1, 1, 3, 4, 3, 9, "ValueError", "no")
    assert folded([raised]).error == ("ValueError", "no", Span(1, 3, 4, 3, 9))
    assert folded([raised, LineReached(1, 1, 5)]).error is None
    assert folded([raised, ScriptEnded(1)]).status == 1


GRAPH = [
    *MADE,
    NodeMade(10, "AccumulateGrad", 0, (), (), 1),
    NodeMade(11, "MulBackward0", 1, (10,), (0,), 0),
    TensorSaved(11, "self", 1, 2, 24, 0, False),
    GradFnSet(1, 11, 0),
]


def test_the_graph_grows_and_lets_go() -> None:
    state = folded(GRAPH)
    assert state.nodes[11].edges == ((10, 0),) and state.tensors[1].node == 11
    assert [saved.field for saved in state.nodes[11].saved] == ["self"]
    assert folded([*GRAPH, SavedFreed(11)]).nodes[11].freed


def test_backward_lights_node_after_node() -> None:
    events: list[Event] = [
        *GRAPH,
        BackwardBegan(1, (11,), False),
        DependenciesCounted(1, (11, 10), (0, 1)),
        NodeReady(11),
    ]
    state = folded(events)
    assert state.backward is not None and state.backward.ready == [11] and state.backward.nodes_total == 2
    assert (state.nodes[11].phase, state.nodes[10].phase, state.nodes[10].waiting) == ("ready", "waiting", 1)
    events += [NodeBegan(11, (1,)), GradientSent(11, 10, 0, 9, False, 0)]
    running = folded(events)
    assert running.backward is not None and running.backward.current == 11 and running.backward.ready == []
    assert [(sent.node, sent.receiver, sent.gradient) for sent in running.backward.sent] == [(11, 10, 9)]
    events += [NodeEnded(11), GradAccumulated(1, 9, True), BackwardEnded(1)]
    ended = folded(events)
    assert ended.backward is not None and not ended.backward.running and ended.backward.nodes_done == 1
    assert ended.nodes[11].phase == "done" and ended.tensors[1].grad == 9


def test_a_backward_pass_inside_another_returns_to_it() -> None:
    events = [BackwardBegan(1, (5,), False), NodeBegan(5, ()), BackwardBegan(2, (6,), False), BackwardEnded(2)]
    state = folded(events)
    assert state.backward is not None and (state.backward.number, state.backward.current) == (1, 5)


def test_the_allocator_moves_with_its_events() -> None:
    events: list[Event] = [
        SegmentAllocated("cuda:0", 4096, 2048, "small", 0),
        BlockAllocated("cuda:0", 4096, 2048, 9, 0, 0),
        StorageMade(3, 9, "cuda:0", 4096),
    ]
    state = folded(events)
    assert state.allocator.blocks[4096].storage == 3
    assert state.allocator.count("allocated_bytes.current") == 2048


# ---- modules -------------------------------------------------------------------------------------------------------

ENTERED = FrameEntered(1, 0, 1, "<module>", 1)
TREE = [
    *MADE,
    ModuleMade(10, "Linear"),
    ParameterSet(10, "weight", 1),
    ModuleMade(11, "Sequential"),
    ChildSet(11, "0", 10),
]


def named(frame: int, name: str, module: int) -> list[Event]:
    return [NameBound(frame, name, 0, "<Sequential>"), ModuleNamed(frame, name, module)]


def test_a_parameter_is_named_by_the_path_of_its_module() -> None:
    state = folded([ENTERED, *TREE, *named(1, "net", 11)])
    assert state.tensors[1].names == ("net.0.weight",)
    assert [(module.path, module.kind) for module in state.modules.values()] == [
        ("net.0", "Linear"),
        ("net", "Sequential"),
    ]
    assert folded([ENTERED, *TREE, *named(1, "net", 11), NameUnbound(1, "net")]).tensors[1].names == ()
    assert folded([ENTERED, *TREE, *named(1, "net", 11), PartRemoved(11, "0")]).tensors[1].names == ()


def test_the_outermost_variable_names_a_module() -> None:
    events = [ENTERED, FrameEntered(2, 1, 1, "forward", 7), *TREE, *named(2, "self", 11)]
    assert folded(events).tensors[1].names == ("self.0.weight",)
    events += named(1, "net", 11)
    assert folded(events).tensors[1].names == ("net.0.weight",)
    assert folded([*events, *named(2, "layer", 10), FrameLeft(2)]).tensors[1].names == ("net.0.weight",)
    assert folded([*events, NameBound(1, "net", 0, "None")]).tensors[1].names == ("self.0.weight",)


def test_variables_come_before_paths_in_modules_and_those_before_containers() -> None:
    events = [ENTERED, *TREE, *named(1, "net", 11), NameBound(1, "kept[0]", 1, ""), NameBound(1, "w", 1, "")]
    assert folded(events).tensors[1].names == ("w", "net.0.weight", "kept[0]")


def test_modules_that_hold_each_other_have_short_paths_and_lose_them() -> None:
    events = [ENTERED, *TREE, ChildSet(10, "owner", 11), *named(1, "net", 11)]
    assert [module.path for module in folded(events).modules.values()] == ["net.0", "net"]
    gone = folded([*events, NameUnbound(1, "net")])
    assert [module.path for module in gone.modules.values()] == ["", ""] and gone.tensors[1].names == ()


def test_nodes_know_the_forward_that_made_them() -> None:
    node = NodeMade(20, "AddmmBackward0", 1, (0,), (0,), 0)
    state = folded([*TREE, ForwardBegan(11), ForwardBegan(10), node])
    assert state.forwards == (11, 10) and state.nodes[20].module == 10
    after = [*TREE, ForwardBegan(11), ForwardBegan(10), ForwardEnded(10), node]
    assert folded(after).nodes[20].module == 11
    assert folded([*after, ForwardEnded(11), ModeSet(11, False), ModuleFreed(10)]).modules.keys() == {11}
