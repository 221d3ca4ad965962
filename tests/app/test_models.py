"""View-models that are small: editor, tensors, variables, timeline, allocator, story, dispatcher."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import pytest

from stridescope.app.moment import Moment
from stridescope.app.panels import (
    allocator_model,
    editor_model,
    saved_model,
    story_model,
    tensors_model,
    timeline_model,
    variables_model,
)
from stridescope.app.panels.allocator import bar_widths
from stridescope.app.panels.dispatcher import op_path
from stridescope.app.selection import Selection, follow, linked
from stridescope.engine import events as ev
from stridescope.engine.devices.out_of_memory import OutOfMemoryError
from stridescope.engine.devices.simulated import SimulatedGPU
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.writer import Writer

MIB = 1 << 20


def moment(recording: Recording, step: int) -> Moment:
    state = recording.state(step)
    return Moment(recording, state, recording.steps - 1, follow(state))


def op(recording: Recording, number: int) -> int:
    return int(recording.ops()[number])


# ---- editor ----------------------------------------------------------------------------------------------------


def test_editor_marks_the_running_expression(strides: Recording) -> None:
    shown = editor_model.picture(moment(strides, op(strides, 6)))
    assert shown is not None
    mark = shown.marks[0]
    assert shown.text.splitlines()[mark.line - 1][mark.start : mark.end] == "(a @ w).relu()"
    assert shown.where == "line 6 · op 2 of 2 · relu"
    assert shown.line == 6


def test_editor_notes_what_lines_gave(strides: Recording) -> None:
    shown = editor_model.picture(moment(strides, int(strides.lines()[-1])))
    assert shown is not None
    assert {line: note.text for line, note in shown.notes.items()} == {
        2: "3×4 f32",
        3: "4×3 view of a",
        4: "4×2 f32 leaf",
        5: "3×2 view of a",
        6: "3×2 f32 grad_fn ReluBackward0",
        7: "scalar f32 grad_fn MeanBackward0",
    }


def test_notes_are_not_there_before_their_line(strides: Recording) -> None:
    shown = editor_model.picture(moment(strides, op(strides, 2)))
    assert shown is not None and set(shown.notes) == {2}


def test_editor_says_which_backward_node_runs(strides: Recording) -> None:
    shown = editor_model.picture(moment(strides, int(strides.backwards()[2])))
    assert shown is not None and shown.where == "line 8 · backward node 3 of 5"


def test_columns_are_bytes_in_cpython() -> None:
    assert editor_model.columns_of('ä = "é" + x', 10, 13) == (8, 11)


@pytest.mark.parametrize("path", ["/a/b/net.py", "C:\\work\\net.py", "net.py"])
def test_file_name(path: str) -> None:
    assert editor_model.file_name(path) == "net.py"


# ---- tables ----------------------------------------------------------------------------------------------------


def test_tensor_rows(strides: Recording) -> None:
    at = moment(strides, int(strides.lines()[-2]))
    rows = [tensors_model.row(at, id) for id in tensors_model.listed(at)]
    assert [row.cells for row in rows if row.named] == [
        ("a", "3, 4", "4, 1", "0", "f32", "—", "0"),
        ("b", "4, 3", "1, 4", "0", "f32", "—", "0"),
        ("w", "4, 2", "2, 1", "0", "f32", "leaf", "0"),
        ("c", "3, 2", "1, 8", "1", "f32", "—", "0"),
        ("y", "3, 2", "2, 1", "0", "f32", "ReluBackward0", "0"),
    ]
    assert [row.aliased for row in rows] == [True, True, False, True, False]


def test_tensor_filter(strides: Recording) -> None:
    at = moment(strides, int(strides.lines()[-2]))
    assert [tensors_model.row(at, id).cells[0] for id in tensors_model.listed(at, "relu")] == ["y"]
    assert tensors_model.headline(at) == "5 alive · 3 storages"


def test_variables_and_calls(strides: Recording) -> None:
    at = moment(strides, int(strides.lines()[-2]))
    assert [(v.name, v.text) for v in variables_model.variables(at)][:2] == [("a", "3×4 f32"), ("b", "4×3 view of a")]
    assert [call.function for call in variables_model.calls(at)] == ["module"]


# ---- timeline --------------------------------------------------------------------------------------------------


def test_timeline_lanes(strides: Recording, allocator: Recording) -> None:
    shown = timeline_model.picture(moment(strides, 20))
    assert [lane.name for lane in shown.lanes] == ["lines", "ops", "backward"]
    assert [len(lane.steps) for lane in shown.lanes] == [8, 9, 5]
    assert shown.words() == f"step 21 of {strides.steps}: 8 lines, 9 ops, 5 backward"
    assert timeline_model.picture(moment(allocator, 5)).lanes[-1].name == "allocator"


# ---- allocator -------------------------------------------------------------------------------------------------


def test_allocator_blocks(allocator: Recording) -> None:
    shown = allocator_model.picture(moment(allocator, int(allocator.lines()[-1])))
    assert shown is not None
    small, large = shown.pools
    assert [block.label for block in large.segments[0].blocks] == ["h  12.0 MiB", "k  4.00 MiB", "free 4.00 MiB"]
    assert [block.kind for block in small.segments[0].blocks] == ["used", "free"]
    assert small.segments[0].caption == "0x7f30 0000 0000   stream 0   2.00 MiB"
    assert sum(block.share for block in large.segments[0].blocks) == pytest.approx(1)


def test_allocator_decision(allocator: Recording) -> None:
    step = int(allocator.steps_of(ev.BlockAllocated)[-1])
    shown = allocator_model.picture(moment(allocator, step))
    assert shown is not None and shown.decision is not None
    assert shown.decision.words == "best fit for 4.00 MiB: split: the rest is over 1 MiB"
    assert shown.decision.address == allocator.event(step).address  # type: ignore[attr-defined]


def test_the_reasons_of_a_decision_step_by_step(tmp_path: Path) -> None:
    recording = allocator_story(tmp_path)
    step = int(recording.steps_of(ev.OutOfMemory)[-1])
    shown = allocator_model.picture(moment(recording, step))
    assert shown is not None and shown.decision is not None
    assert shown.decision.title == "900.0 MiB asked for on stream 0"
    assert [sign for sign, _ in shown.decision.steps] == ["✕", "!", "·", "!", "!", "!", "!"]
    assert shown.decision.steps[0][1].endswith(": too small by 891.0 MiB")
    assert shown.decision.steps[-1][1].startswith("Of the allocated memory")
    assert [pool.title for pool in shown.pools] == ["small pool", "large pool", "private pool (0, 1): large pool"]
    assert {block.verdict for pool in shown.pools for row in pool.segments for block in row.blocks} == {"", "refused"}
    assert "1 retry" in shown.curve.notes[-1][0]
    before = allocator_model.picture(moment(recording, int(recording.steps_of(ev.BlockAwaitsEvent)[-1])))
    assert before is not None
    labels = [block.label for pool in before.pools for row in pool.segments for block in row.blocks]
    assert "awaits stream 1  24.0 MiB" in labels


def allocator_story(folder: Path) -> Recording:
    """Blocks that are freed, awaited, in a private pool, and a request that cannot be had."""
    gpu, journal = SimulatedGPU(512 * MIB), ev.Journal()
    gpu.allocator.log.journal = journal
    writer = Writer(folder / "story.stride", {"script": "story.py"})
    writer.attach(journal)
    malloc, free = gpu.allocator.malloc, gpu.allocator.free
    first, kept, other = malloc(30 * MIB), malloc(700), malloc(24 * MIB)
    free(first)
    gpu.allocator.record_stream(other, 1)
    gpu.clock.enqueue(1, 10**9)
    free(other)
    gpu.allocator.create_pool((0, 1))
    gpu.allocator.begin_allocate_to_pool((0, 1), lambda stream: True)
    lent = malloc(3 * MIB)
    gpu.allocator.end_allocate_to_pool((0, 1))
    last = malloc(21 * MIB)
    with pytest.raises(OutOfMemoryError):
        malloc(900 * MIB)
    assert kept.allocated and lent.allocated and last.allocated
    writer.close(0)
    return Recording.open(folder / "story.stride")


def test_no_allocator_without_a_device(strides: Recording) -> None:
    assert allocator_model.picture(moment(strides, 30)) is None


def test_small_blocks_stay_visible() -> None:
    widths = bar_widths(np.array([0.0001, 0.5, 0.4999]), 600)
    assert widths.sum() == pytest.approx(600) and widths.min() >= 40
    assert bar_widths(np.array([0.5, 0.5]), 600).tolist() == [300, 300]


# ---- story -----------------------------------------------------------------------------------------------------


def test_story_of_an_op(strides: Recording) -> None:
    told = story_model.story(moment(strides, int(strides.lines()[-2]) - 4))
    assert told.title == "relu: a new tensor, a new node"
    assert "<b>ReluBackward0</b> joins the graph and keeps <b>result</b> at version 0" in told.body
    assert "backward would refuse" in told.hint


def test_story_at_a_stop_tells_what_was_and_what_comes(strides: Recording) -> None:
    told = story_model.story(moment(strides, op(strides, 6)))
    assert told.title == "mm: a new tensor, a new node"
    assert told.hint.startswith("Next: <b>relu</b>")


def test_story_of_a_view(strides: Recording) -> None:
    told = story_model.story(moment(strides, op(strides, 5) - 2))
    assert told.title == "slice: a view, no byte moves"
    assert told.body == "<b>c</b> looks into the bytes of <b>a</b>: 3×2, stride (1, 8), offset 1."


def test_story_of_backward(strides: Recording) -> None:
    told = story_model.story(moment(strides, int(strides.backwards()[2])))
    assert told.title == "Backward: ReluBackward0 runs"
    assert told.hint == "0 ready, 2 waiting, 2 done."


def test_story_of_an_allocation(allocator: Recording) -> None:
    told = story_model.story(moment(allocator, int(allocator.steps_of(ev.BlockAllocated)[-1])))
    assert "4.00 MiB are asked for" in told.words() or "4.00 MiB" in told.words()


def test_every_event_has_a_sentence(recording: Recording) -> None:
    for step in range(recording.steps):
        assert story_model.sentence(recording.event(step))
        assert story_model.story(moment(recording, step)).title


# ---- dispatcher and selection ----------------------------------------------------------------------------------


def test_dispatcher_path(strides: Recording) -> None:
    path = op_path(moment(strides, op(strides, 6) + 1))
    assert path is not None
    assert (path.op, path.keys) == ("aten::relu", ("AutogradCPU", "CPU"))


def test_selecting_one_face_gives_the_others(strides: Recording) -> None:
    state = strides.state(int(strides.lines()[-2]))
    y = next(t for t in state.tensors.values() if "y" in t.names)
    for selection in (Selection(tensor=y.id), Selection(storage=y.storage), Selection(node=y.node)):
        found = linked(state, selection)
        assert (found.tensor, found.storage, found.node) == (y.id, y.storage, y.node)


def test_a_leaf_and_its_node_are_one(strides: Recording) -> None:
    state = strides.state(int(strides.lines()[-2]))
    w = next(t for t in state.tensors.values() if "w" in t.names)
    node = linked(state, Selection(tensor=w.id)).node
    assert state.nodes[node].name == "AccumulateGrad"
    assert linked(state, Selection(node=node)).tensor == w.id


def test_what_is_gone_is_not_selected(strides: Recording) -> None:
    assert not linked(strides.state(3), Selection(tensor=5, storage=4, node=2))


# ---- saved tensors ---------------------------------------------------------------------------------------------


def test_saved_tensors(strides: Recording) -> None:
    at = moment(strides, int(strides.lines()[-2]))
    assert [row.cells for row in saved_model.rows(at)] == [
        ("ReluBackward0", "result", "y", "0", "0", "24 B"),
        ("MmBackward0", "self", "a", "0", "0", "48 B"),
    ]
    assert saved_model.headline(at) == "72 B kept"


def test_freed_and_overwritten_saved_tensors(strides: Recording) -> None:
    at = moment(strides, int(strides.backwards()[3]))
    assert [row.cells[4] for row in saved_model.rows(at)] == ["freed", "freed", "0"]
    before = moment(strides, int(strides.lines()[-2]))
    y = next(t for t in before.state.tensors.values() if "y" in t.names)
    written = dataclasses.replace(before.state)
    written.tensors = {**before.state.tensors, y.id: msgspec.structs.replace(y, version=1)}
    rows = saved_model.rows(dataclasses.replace(before, state=written))
    assert [(row.cells[4], row.stale) for row in rows] == [("1 ✗", True), ("0", False)]
