"""Stops inside a line: before an op, between an op's decisions, between two nodes of a backward pass."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine import events
from stridescope.engine.events import Event
from stridescope.engine.worker.protocol import (
    Breakpoint,
    Complete,
    Completed,
    Ended,
    Evaluate,
    Evaluated,
    Failed,
    Pause,
    Run,
    RunTo,
    RunUntil,
    SetBreakpoints,
    Step,
    Stopped,
)

SOURCE = """\
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def double(t):
    return t * 2


y = double(x) + x.exp()
s = y.t().sum()
s.backward()
print(x.grad.tolist())
with torch.no_grad():
    x.add_(1)
c = x.detach().clone()
z = x / 0
"""


@pytest.fixture
def path(script: Callable[..., pathlib.Path]) -> pathlib.Path:
    return script(SOURCE)


@pytest.fixture
def at_sum(work: Callable[..., Any], path: pathlib.Path) -> Any:
    """A worker that stands at the line of the addition."""
    started = work(path, break_on_start=False, breakpoints=(Breakpoint(path=str(path), line=10),))
    started.wait(Stopped)
    started.send(SetBreakpoints(()))
    return started


def go(work: Any, command: object) -> Event:
    """Send a command and return the event at which the script stops next."""
    work.send(command)
    stopped = work.wait(Stopped)
    return work.events()[stopped.step]


def ops(work: Any, command: object, times: int) -> list[str]:
    return [getattr(go(work, command), "op", "") for _ in range(times)]


def test_over_by_ops_stops_before_each_op_and_knows_its_expression(at_sum: Any) -> None:
    first = go(at_sum, Step("op", "into"))
    assert isinstance(first, events.LineReached) and first.line == 7
    mul = go(at_sum, Step("op", "over"))
    assert isinstance(mul, events.OpBegan)
    assert (mul.op, mul.line, mul.column, mul.end_column) == ("mul", 7, 11, 16)
    exp = go(at_sum, Step("op", "out"))
    assert isinstance(exp, events.LineReached) or exp.op in ("exp", "add")


def test_over_by_ops_from_a_line_stays_in_the_callers_frame(at_sum: Any) -> None:
    assert ops(at_sum, Step("op", "over"), 2) == ["exp", "add"]


def test_into_an_op_shows_its_decisions_and_out_leaves_it(at_sum: Any) -> None:
    assert ops(at_sum, Step("op", "over"), 1) == ["exp"]
    assert isinstance(go(at_sum, Step("op", "into")), events.KeysChosen)
    inside = go(at_sum, Step("event", "over"))
    assert isinstance(inside, (events.StorageMade, events.TensorMade))
    assert getattr(go(at_sum, Step("op", "out")), "op", None) == "add"


def test_backward_stops_between_nodes(at_sum: Any, path: pathlib.Path) -> None:
    go(at_sum, RunTo(str(path), 12))
    nodes = []
    while not isinstance(event := go(at_sum, Step("op", "into")), events.LineReached):
        if isinstance(event, events.NodeBegan):
            nodes.append(event.node)
        if isinstance(event, events.KeysChosen):  # inside an op of a node
            at_sum.send(Step("op", "out"))
            at_sum.wait(Stopped)
    state = at_sum.state()
    assert len(nodes) >= 2 and not state.backward.running


def test_over_backward_is_one_line(at_sum: Any, path: pathlib.Path) -> None:
    go(at_sum, RunTo(str(path), 12))
    event = go(at_sum, Step("line", "over"))
    assert isinstance(event, events.LineReached) and event.line == 13


UNTIL = [
    (Breakpoint(kind="op", op="exp"), events.OpBegan),
    (Breakpoint(kind="op", op="aten::add"), events.OpBegan),
    (Breakpoint(kind="backward"), events.BackwardBegan),
    (Breakpoint(kind="node"), events.NodeBegan),
    (Breakpoint(kind="copy"), events.CopyMade),
    (Breakpoint(kind="allocation"), events.StorageMade),
    (Breakpoint(kind="tensor", number=1, change="grad"), events.GradAccumulated),
    (Breakpoint(kind="tensor", number=1, change="written"), events.VersionBumped),
]


@pytest.mark.parametrize(("wanted", "kind"), UNTIL, ids=lambda value: getattr(value, "__name__", None) or str(value))
def test_run_until_stops_once(at_sum: Any, wanted: Breakpoint, kind: type[Event]) -> None:
    assert isinstance(go(at_sum, RunUntil(wanted)), kind)
    at_sum.send(Run())
    assert at_sum.wait(Ended).status == 0


def test_run_until_something_unknown_is_refused(at_sum: Any) -> None:
    at_sum.send(RunUntil(Breakpoint(kind="nothing like this")))
    assert "there is no breakpoint of kind" in at_sum.wait(Failed).message
    at_sum.send(Run())
    assert at_sum.wait(Ended).status == 0


PREDICATES = {
    "noncontiguous": ("y = torch.ones(2, 3)\nz = y.t()\n", 3),
    "notfinite": ("x = torch.ones(2, requires_grad=True)\n(x / 0 * 0).sum().backward()\n", 3),
    "mutated": ("x = torch.ones(2, requires_grad=True)\nw = torch.ones(2)\ny = x * w\nw.add_(1)\n", 5),
    "reserved": ("d = 'cuda'\na = torch.ones(4, device=d)\nb = torch.ones(1 << 23, device=d)\n", 4),
    "split": ("a = torch.ones(4, device='cuda')\n", 2),
    "error": ("import json\ntry:\n    json.loads('{')\nexcept ValueError:\n    pass\n1/0\n", 4),
}


@pytest.mark.parametrize("kind", PREDICATES)
def test_predicates_of_the_machine(kind: str, script: Callable[..., pathlib.Path], work: Callable[..., Any]) -> None:
    source, line = PREDICATES[kind]
    number = 4 << 20 if kind == "reserved" else 0
    started = work(
        script("import torch\n" + source), break_on_start=False, breakpoints=(Breakpoint(kind, number=number),)
    )
    stopped = started.wait(Stopped)
    assert stopped.reason == "breakpoint" and stopped.detail.startswith(kind)
    assert started.state(stopped.step).line == line


BORN = """import torch
w = torch.zeros(3)
for step in range(3):
    h = w + step
    h.mul_(2)
print(h)
"""


@pytest.mark.parametrize("when", ["at the start", "at its birth", "after it"])
def test_a_breakpoint_on_a_tensor_by_where_it_is_born(
    when: str, script: Callable[..., pathlib.Path], work: Callable[..., Any]
) -> None:
    path = script(BORN)
    second = Breakpoint("tensor", path=str(path), line=4, number=2, change="written", name="h")
    if when == "at the start":
        started = work(path, break_on_start=False, breakpoints=(second,))
    else:
        started = work(path)
        started.wait(Stopped)
        started.send(RunUntil(Breakpoint(kind="op", op="mul_" if when == "after it" else "add", skip=1)))
        started.wait(Stopped)
        started.send(SetBreakpoints((Breakpoint("line", condition="1 +"), second)))
        assert "is no expression" in started.wait(Failed).message  # and the other one is armed all the same
        started.send(Run())
    stopped = started.wait(Stopped)
    assert (stopped.reason, stopped.detail) == ("breakpoint", "h written")
    state = started.state(stopped.step)
    assert state.line == 5 and {name.name: name.text for name in state.frames[0].names.values()}["step"] == "1"
    started.send(Run())
    assert started.wait(Ended).status == 0


def test_the_consoles_ops_are_its_own(at_sum: Any) -> None:
    at_sum.send(Evaluate(1, "(x * 3).tolist()"))
    answer = at_sum.wait(Evaluated)
    assert (answer.text, answer.ok) == ("[3.0, 6.0, 9.0]", True)
    mul = next(event for event in at_sum.events(events.OpBegan) if event.op == "mul")
    paths = {event.source: event.path for event in at_sum.events(events.SourceSeen)}
    assert paths[mul.source] == "<console>" and (mul.line, mul.column, mul.end_column) == (1, 1, 6)


def test_a_watch_is_not_recorded(at_sum: Any) -> None:
    before = at_sum.events()
    at_sum.send(Evaluate(1, "(x * 3).tolist()", recorded=False))
    answer = at_sum.wait(Evaluated)
    assert (answer.text, answer.ok) == ("[3.0, 6.0, 9.0]", True)
    assert at_sum.events() == before


def test_the_console_changes_a_value_and_the_script_goes_on_with_it(at_sum: Any) -> None:
    assert getattr(go(at_sum, Step("op", "into")), "line", 0) == 7
    at_sum.send(Evaluate(1, "t = t * 0"))
    assert at_sum.wait(Evaluated).ok
    at_sum.send(Evaluate(2, "1 / 0"))
    answer = at_sum.wait(Evaluated)
    assert not answer.ok and answer.text.endswith("ZeroDivisionError: division by zero")
    at_sum.send(RunTo(str(at_sum.recording.parent / "user.py"), 11))
    at_sum.wait(Stopped)
    at_sum.send(Evaluate(3, "y.tolist() == x.exp().tolist()"))
    assert at_sum.wait(Evaluated).text == "True"


def test_the_console_is_interrupted(at_sum: Any) -> None:
    at_sum.send(Evaluate(1, "print('begun')\nwhile True: pass"))
    at_sum.until(events.OutputWritten)
    at_sum.send(Pause())
    answer = at_sum.wait(Evaluated)
    assert not answer.ok and answer.text.endswith("KeyboardInterrupt")


def test_the_console_completes_names(at_sum: Any) -> None:
    at_sum.send(Complete(1, "doub"))
    assert at_sum.wait(Completed).names == ("double",)
    at_sum.send(Complete(2, "print(x.requires_gr"))
    assert "x.requires_grad" in at_sum.wait(Completed).names
