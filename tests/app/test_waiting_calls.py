"""Calls that wait: a generator between two values, a coroutine, are beside the calls that run, not inside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stridescope.app.moment import Moment
from stridescope.app.panels.variables_model import calls, variables
from stridescope.app.recorded_values import answer
from stridescope.app.selection import follow
from stridescope.engine import events as ev
from stridescope.engine.recording.model import State
from stridescope.engine.recording.reader import Recording

SCRIPT = Path(__file__).parents[1] / "scripts" / "waits.py"
LINES = SCRIPT.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def waits(tmp_path_factory: pytest.TempPathFactory, record_file: Callable[[Path, Path], Recording]) -> Recording:
    return record_file(SCRIPT, tmp_path_factory.mktemp("waits"))


def at(recording: Recording, text: str, time: int = 0) -> State:
    """The state when the line that holds ``text`` is about to run, counted from 0."""
    number = next(n for n, line in enumerate(LINES, 1) if text in line)
    steps = [s for s in recording.lines().tolist() if recording.event(s).line == number]  # type: ignore[attr-defined]
    return recording.state(steps[time])


def functions(state: State) -> list[str]:
    return [frame.function for frame in state.stack]


def test_the_stack_has_what_runs(waits: Recording) -> None:
    assert functions(at(waits, "k = k + 1")) == ["<module>", "main", "numbers"]
    assert functions(at(waits, "u = double(t)")) == ["<module>", "main"]
    assert functions(at(waits, "return t * 2")) == ["<module>", "main", "double"]
    assert functions(at(waits, "return total + k")) == ["<module>", "main"]
    assert functions(at(waits, "return torch.ones(k)", 1))[-1] == "job"


def test_a_return_goes_back_to_the_caller_not_to_what_waits(waits: Recording) -> None:
    line = LINES.index("        u = double(t)") + 1
    lefts = waits.steps_of(ev.FrameLeft).tolist()
    double = [s for s in lefts if functions(waits.state(s - 1))[-1:] == ["double"]]
    assert len(double) == 2
    assert [(waits.state(s).line, functions(waits.state(s))[-1]) for s in double] == [(line, "main")] * 2


def test_names_are_those_of_the_call_that_runs(waits: Recording) -> None:
    assert answer(at(waits, "u = double(t)"), "k") == ("7", True)
    assert answer(at(waits, "k = k + 1", 1), "k") == ("101", True)
    assert answer(at(waits, "return t * 2"), "k") == ("-1", True)


def test_the_panels_show_what_waits_apart(waits: Recording) -> None:
    state = at(waits, "u = double(t)")
    moment = Moment(waits, state, waits.steps - 1, follow(state))
    assert [call.function for call in calls(moment)] == ["main()", "module"]
    rows = variables(moment)
    titles = [row.text for row in rows if not row.name]
    assert titles == ["main()", "module", "numbers() elsewhere"]
    assert [row.text for row in rows if row.name == "k"] == ["7", "101"]
