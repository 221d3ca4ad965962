"""What the Modules and Hooks panels say of a recorded session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from stridescope.app.moment import Moment
from stridescope.app.panels import editor_model, hooks_model, modules_model
from stridescope.app.panels.hooks import HooksPanel
from stridescope.app.panels.modules import ModulesPanel
from stridescope.app.panels.story_model import story
from stridescope.app.selection import Selection
from stridescope.engine.events import HookRan
from stridescope.engine.recording.reader import Recording

SCRIPT = """import torch
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
net[0].weight.register_hook(lambda grad: grad * 2)
net[1].register_forward_pre_hook(lambda module, inputs: None)
net[1].register_forward_hook(lambda module, inputs, output: output * 1)
net[0].bias.requires_grad_(False)
other = net
def run(model, x):
    return model(x).sum()
for step in range(2):
    loss = run(net, torch.ones(2, 4)); loss.backward()
wide = torch.nn.ParameterList([torch.zeros(1) for _ in range(40)])
encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 1, 4, batch_first=True), 1)
net[1].eval()
encoder.layers[0].norm1.register_buffer("mask", torch.ones(2))
print("end")
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, record_file: Callable[[Path, Path], Recording]) -> Recording:
    """The recording of a small model with hooks."""
    script = tmp_path_factory.mktemp("model") / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    return record_file(script, script.parent)


def at_line(recording: Recording, line: int) -> Moment:
    steps = [step for step in recording.lines().tolist() if recording.event(step).line == line]  # type: ignore[attr-defined]
    return Moment(recording, recording.state(steps[-1]), recording.steps - 1, Selection())


def said(recording: Recording, line: int, name: str) -> list[tuple[str, ...]]:
    """The rows of one tree: depth, words, shape, whether it learns, its gradient."""
    rows = modules_model.rows(at_line(recording, line))
    tops = [at for at, row in enumerate(rows) if not row.depth]
    first = next(at for at in tops if rows[at].cells[0].startswith(name))
    last = min([at for at in tops if at > first], default=len(rows))
    return [(str(row.depth), *row.cells[:2], *row.cells[4:6]) for row in rows[first:last]]


def test_modules_say_what_learns_and_has_its_gradient(session: Recording) -> None:
    assert said(session, 12, "net") == [
        ("0", "net · Sequential · training", "", "", ""),
        ("1", "0 · Linear", "", "", ""),
        ("2", "weight", "8×4", "yes", "net.0.weight.grad"),
        ("2", "bias", "8", "no", "—"),
        ("1", "1 · ReLU", "", "", ""),
        ("1", "2 · Linear", "", "", ""),
        ("2", "weight", "1×8", "yes", "net.2.weight.grad"),
        ("2", "bias", "1", "yes", "net.2.bias.grad"),
    ]
    assert modules_model.headline(at_line(session, 12)) == "3 parameters · 41 elements"
    assert {row[4] for row in said(session, 7, "net")} == {"none", "—", ""}


def test_a_wide_module_is_shown_whole(session: Recording) -> None:
    assert len(said(session, 13, "wide")) == 1 + 40


def test_a_large_tree_opens_module_by_module(qtbot: QtBot, session: Recording) -> None:
    moment = at_line(session, 16)
    assert [row[1] for row in said(session, 16, "net") if row[0] == "1"] == [
        "0 · Linear",
        "1 · ReLU · eval",
        "2 · Linear",
    ]
    assert [row[1] for row in said(session, 16, "encoder")][-1] == "dropout2 · Dropout"  # three levels are open
    panel = ModulesPanel()
    qtbot.addWidget(panel)
    panel.resize(700, 900)
    panel.show()
    panel.present(moment)
    for path in ("self_attn", "norm1"):
        at = next(n for n, row in enumerate(panel.rows.rows) if row.cells[0].startswith(path) and row.opened is False)
        place = panel.visualRect(panel.rows.index(at, 0)).center()
        qtbot.mouseClick(panel.viewport(), Qt.MouseButton.LeftButton, pos=place)
    names = {row.cells[0]: row.cells[4] for row in panel.rows.rows}
    assert names["in_proj_weight"] == "yes" and names["mask"] == "buffer"
    opened = len(panel.rows.rows)
    qtbot.keyClick(panel, Qt.Key.Key_Left)  # the last one that was clicked
    assert len(panel.rows.rows) == opened - 3
    weights = [t for t in moment.state.tensors.values() if "encoder.layers.0.self_attn.in_proj_weight" in t.names]
    assert len(weights) == 1


def test_the_forward_that_runs_is_said(session: Recording) -> None:
    step = next(s for s in session.ops().tolist() if getattr(session.event(s), "op", "") == "relu")
    moment = Moment(session, session.state(step), session.steps - 1, Selection())
    runs = [row.cells[0] for row in modules_model.rows(moment) if "forward runs" in row.cells[0]]
    assert runs == ["net · Sequential · training · forward runs", "1 · ReLU · forward runs"]
    assert "In the forward of net.1 (ReLU)." in story(moment).words()
    after = session.state(next(s for s in session.ops().tolist() if s > step))
    assert {node.name: node.module for node in after.nodes.values()}["ReluBackward0"] == moment.state.forwards[-1]


def test_a_value_stands_beside_the_line_that_gave_it_past_the_calls_it_made(session: Recording) -> None:
    shown = editor_model.picture(at_line(session, 12))
    assert shown is not None and shown.notes[11].text == "scalar f32 grad_fn SumBackward0"
    assert 9 not in shown.notes


def test_hooks_are_listed_as_they_ran(session: Recording) -> None:
    rows = hooks_model.rows(at_line(session, 13))[::-1]
    one_round = ["forward pre-hook of ReLU", "forward hook of ReLU", "tensor hook"]
    assert [row.cells[1] for row in rows] == 2 * one_round
    assert [row.cells[4] for row in rows] == ["—", "—", "1", "1", "1", "2"]
    assert rows[2].cells[3] == "AccumulateGrad" and rows[2].cells[2] != "—"
    assert hooks_model.headline(at_line(session, 13)) == "6 calls of hooks"
    assert hooks_model.rows(at_line(session, 7)) == []


def test_a_double_click_goes_to_the_call(qtbot: QtBot, session: Recording) -> None:
    panel = HooksPanel()
    qtbot.addWidget(panel)
    panel.resize(500, 300)
    panel.show()
    panel.present(at_line(session, 13))
    with qtbot.waitSignal(panel.visited) as visited:
        at = panel.visualRect(panel.rows.index(1, 1)).center()
        qtbot.mouseClick(panel.viewport(), Qt.MouseButton.LeftButton, pos=at)
        qtbot.mouseDClick(panel.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert visited.args == [int(np.sort(session.steps_of(HookRan))[-2])]
