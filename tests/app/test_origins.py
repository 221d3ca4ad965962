"""What the strip says of a real script: whose value an expression is, and what was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stridescope.app.moment import Moment
from stridescope.app.origins import expression_of
from stridescope.app.panels.story_model import story
from stridescope.app.selection import follow
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
x.mul_(2)
end = True
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, record_file: Callable[[Path, Path], Recording]) -> Recording:
    """The script, run and recorded."""
    script = tmp_path_factory.mktemp("origins") / "mine.py"
    script.write_text(SCRIPT, encoding="utf-8")
    return record_file(script, script.parent)


@pytest.fixture(scope="module")
def texts(session: Recording) -> dict[str, set[str]]:
    """What is said of each op of the script, by the op's name."""
    found: dict[str, set[str]] = {}
    for step in session.ops().tolist():
        began = session.event(step)
        assert isinstance(began, OpBegan)
        found.setdefault(began.op.rpartition("::")[2], set()).add(expression_of(session, step))
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


def test_the_story_says_what_was_written(session: Recording) -> None:
    step = int(session.lines()[-1])
    state = session.state(step)
    told = story(Moment(session, state, session.steps - 1, follow(state)))
    assert told.title == "mul_: a write in place"
    assert told.body == "An in-place write raises the version of <b>x</b> to 1."
