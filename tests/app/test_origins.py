"""Which source text is said to be the value of an op: only one that is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stridescope.app.origins import expression_of
from stridescope.engine.events import OpBegan
from stridescope.engine.recording.reader import Recording

SCRIPT = """import torch
layer = torch.nn.Linear(3, 2)
act = torch.nn.ReLU()
x = torch.ones(2, 3)
y = layer(x)
z = act(y)
p = z.softmax(-1)
q = p[0] + p[1]
"""


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What is said of each op of the script, by the op's name."""
    folder = tmp_path_factory.mktemp("origins")
    (folder / "mine.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-P", "-m", "stridescope.app.cli", "record", "mine.py", "-o", "mine.stride"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    recording = Recording.open(folder / "mine.stride")
    found: dict[str, set[str]] = {}
    for step in recording.ops().tolist():
        began = recording.event(step)
        assert isinstance(began, OpBegan)
        found.setdefault(began.op.rpartition("::")[2], set()).add(expression_of(recording, step))
    return found


def test_a_call_of_many_ops_is_the_value_of_none(texts: dict[str, set[str]]) -> None:
    assert texts["uniform_"] == {""} and texts["addmm"] == {""}


def test_a_call_that_names_its_op_is_its_value_and_of_what_it_is_made_of(texts: dict[str, set[str]]) -> None:
    assert texts["ones"] == {"torch.ones(2, 3)"}
    assert texts["softmax"] == texts["_softmax"] == {"z.softmax(-1)"}


def test_a_single_op_gives_the_value_of_its_call(texts: dict[str, set[str]]) -> None:
    assert texts["relu"] == {"act(y)"}


def test_what_is_no_call_is_a_value(texts: dict[str, set[str]]) -> None:
    assert texts["add"] == {"p[0] + p[1]"} and texts["select"] == {"p[0]", "p[1]"}
