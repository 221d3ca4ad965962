"""What the Modules and Hooks panels say of a recorded session."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from stridescope.app.moment import Moment
from stridescope.app.panels import hooks_model, modules_model
from stridescope.app.panels.hooks import HooksPanel
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
    run(net, torch.ones(2, 4)).backward()
wide = torch.nn.ParameterList([torch.zeros(1) for _ in range(40)])
print("end")
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    """The recording of a small model with hooks."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    command = ["record", str(folder / "script.py"), "-o", str(folder / "run.stride")]
    subprocess.run([sys.executable, "-P", "-m", "stridescope.app.cli", *command], check=True, timeout=60)
    with Recording.open(folder / "run.stride") as recording:
        yield recording


def at_line(recording: Recording, line: int) -> Moment:
    steps = [step for step in recording.lines().tolist() if recording.event(step).line == line]  # type: ignore[attr-defined]
    return Moment(recording, recording.state(steps[-1]), recording.steps - 1, Selection())


def test_modules_say_what_learns_and_has_its_gradient(session: Recording) -> None:
    rows = modules_model.rows(at_line(session, 12))
    assert rows[0].cells[0].startswith("net · ") and "Sequential" in rows[0].cells[0]
    assert [(row.cells[0], row.cells[1], *row.cells[4:6]) for row in rows[1:]] == [
        ("0.weight", "8×4", "yes", "net.0.weight.grad"),
        ("0.bias", "8", "no", "—"),
        ("2.weight", "1×8", "yes", "net.2.weight.grad"),
        ("2.bias", "1", "yes", "net.2.bias.grad"),
    ]
    assert modules_model.headline(at_line(session, 12)) == "3 parameters · 41 elements"
    assert {row.cells[5] for row in modules_model.rows(at_line(session, 7))[1:]} == {"none", "—"}


def test_a_wide_module_says_that_not_all_of_it_is_recorded(session: Recording) -> None:
    rows = modules_model.rows(at_line(session, 13))
    assert "only the first 32" in rows[-1].cells[0] and len(rows) == 1 + 4 + 1 + 32 + 1


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
