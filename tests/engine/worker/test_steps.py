"""Steps, breakpoints, pause and stop, driven through the protocol as the window drives them."""

from __future__ import annotations

import pathlib
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine.events import FrameEntered, LineReached, RecordingCut, ScriptEnded
from stridescope.engine.worker.client import WorkerTimeout
from stridescope.engine.worker.protocol import (
    Breakpoint,
    Busy,
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
    Stop,
    Stopped,
)

CALLS = """\
def inner(x):
    y = x + 1
    return y


def outer(n):
    total = 0
    for i in range(n):
        total += inner(i)
    return total


first = outer(2)
second = outer(1)
print(first, second)
"""

ENDLESS = sorted((pathlib.Path(__file__).parents[2] / "scripts" / "endless").glob("*.py"))
ENDLESS_LOOP = next(path for path in ENDLESS if path.stem == "pure")
named = pytest.mark.parametrize("path", ENDLESS, ids=lambda path: path.stem)
Writer = Callable[..., pathlib.Path]
Starter = Callable[..., Any]


def line(work: Any, stopped: Stopped) -> int:
    """The line at which the script stands: the one of the step's own event."""
    event = work.events()[stopped.step]
    assert isinstance(event, LineReached)
    return event.line


def go(work: Any, command: object) -> int:
    work.send(command)
    return line(work, work.wait(Stopped))


@pytest.fixture
def calls(script: Writer, work: Starter) -> Any:
    started = work(script(CALLS))
    assert line(started, started.wait(Stopped)) == 1
    return started


COROUTINES = """\
import asyncio


async def one():
    a = 1
    await asyncio.sleep(0)
    a = 2
    return a


async def other():
    b = 1
    await asyncio.sleep(0)
    b = 2


async def main():
    await asyncio.gather(one(), other())
    done = True


asyncio.run(main())
"""


def test_over_an_await_stays_in_its_coroutine(script: Writer, work: Starter) -> None:
    path = script(COROUTINES)
    started = work(path)
    started.wait(Stopped)
    assert go(started, RunTo(str(path), 5)) == 5
    assert [go(started, Step("line", "over")) for _ in range(3)] == [6, 7, 8]
    assert go(started, Step("line", "over")) == 14  # the coroutine has ended: whoever runs next


def test_over_stays_level(calls: Any) -> None:
    assert [go(calls, Step("line", "over")) for _ in range(4)] == [6, 13, 14, 15]
    calls.send(Step("line", "over"))
    assert calls.wait(Ended) == Ended(0, "finished")


def test_into_enters_a_call_and_out_leaves_it(calls: Any) -> None:
    assert go(calls, RunTo(calls.events(LineReached) and path_of(calls), 13)) == 13
    assert go(calls, Step("line", "into")) == 7
    assert go(calls, Step("line", "over")) == 8
    assert go(calls, Step("line", "over")) == 9
    assert go(calls, Step("line", "into")) == 2
    assert go(calls, Step("line", "out")) == 8
    assert go(calls, Step("line", "out")) == 14


def path_of(work: Any) -> str:
    with_sources = work.state()
    assert with_sources.frames
    return str(work.recording.parent / "user.py")


def test_over_a_return_goes_to_the_caller(calls: Any) -> None:
    assert go(calls, RunTo(path_of(calls), 3)) == 3
    assert go(calls, Step("line", "over")) == 8


def test_a_breakpoint_stops_every_time_and_can_be_taken_away(calls: Any) -> None:
    calls.send(SetBreakpoints((Breakpoint(path=path_of(calls), line=2),)))
    assert [go(calls, Run()) for _ in range(2)] == [2, 2]
    calls.send(SetBreakpoints(()))
    calls.send(Run())
    assert calls.wait(Ended).status == 0


@pytest.mark.parametrize(("asked", "found"), [(4, 6), (5, 6), (11, 13)])
def test_a_breakpoint_on_a_line_without_code_holds_at_the_next(calls: Any, asked: int, found: int) -> None:
    assert go(calls, RunTo(path_of(calls), asked)) == found


def test_a_condition_chooses_the_hits(calls: Any) -> None:
    calls.send(SetBreakpoints((Breakpoint(path=path_of(calls), line=9, condition="i == 1 and n == 2"),)))
    calls.send(Run())
    stopped = calls.wait(Stopped)
    assert (stopped.reason, stopped.detail) == ("breakpoint", "user.py:9")
    assert calls.state().frames[-1].names["i"].text == "1"


def test_a_condition_that_fails_stops_and_says_why(calls: Any) -> None:
    calls.send(SetBreakpoints((Breakpoint(path=path_of(calls), line=9, condition="nothing > 1"),)))
    calls.send(Run())
    assert calls.wait(Stopped).detail == "the condition fails: NameError: name 'nothing' is not defined"


def test_hits_can_be_skipped(calls: Any) -> None:
    calls.send(SetBreakpoints((Breakpoint(path=path_of(calls), line=2, skip=2),)))
    assert go(calls, Run()) == 2
    assert calls.state().frames[-1].names["x"].text == "0"
    assert len([e for e in calls.events(FrameEntered) if e.function == "inner"]) == 3


@pytest.mark.parametrize(
    "wrong", [Breakpoint(kind="line", line=1, condition="1 +"), Breakpoint(kind="no such kind")], ids=["text", "kind"]
)
def test_a_breakpoint_that_cannot_be_is_refused(calls: Any, wrong: Breakpoint) -> None:
    calls.send(SetBreakpoints((wrong,)))
    assert wrong.condition in calls.wait(Failed).message


def test_breakpoints_can_be_there_from_the_start(script: Writer, work: Starter) -> None:
    path = script(CALLS)
    started = work(path, break_on_start=False, breakpoints=(Breakpoint(path=str(path), line=15),))
    assert line(started, started.wait(Stopped)) == 15


def test_each_stop_finds_the_recording_complete(calls: Any) -> None:
    for _ in range(12):
        calls.send(Step("line", "into"))
        stopped = calls.wait(Stopped)
        assert len(calls.events()) == stopped.step + 1
        assert calls.state(stopped.step).line == line(calls, stopped)


def test_the_script_can_call_for_a_breakpoint(script: Writer, work: Starter) -> None:
    started = work(script("a = 1\nbreakpoint()\nb = 2\n"), break_on_start=False)
    stopped = started.wait(Stopped)
    assert (stopped.reason, stopped.detail) == ("breakpoint", "breakpoint()")
    assert started.state(stopped.step).line == 2
    assert go(started, Step("line", "over")) == 3


def test_a_run_goes_on_from_a_step_of_the_last_one(calls: Any, script: Writer, work: Starter) -> None:
    for wanted in (9, 9, 8):
        assert go(calls, RunTo(path_of(calls), wanted)) == wanted
    before = calls.events()
    again = work(script(CALLS), until_step=len(before) - 1)
    assert again.wait(Stopped).step == len(before) - 1
    assert again.events() == before


def settled(work: Any) -> None:
    """Wait until the script is well inside its loop, which no event tells."""
    work.until(LineReached)
    time.sleep(0.3)


@named
def test_stop_ends_an_endless_script_within_half_a_second(path: pathlib.Path, work: Starter) -> None:
    started = work(path, break_on_start=False)
    settled(started)
    asked = time.monotonic()
    started.send(Stop())
    ended = started.wait(Ended, timeout=5)
    assert time.monotonic() - asked < 1.0
    assert ended.reason == "stopped"
    started.client.process.wait(5)
    assert started.events(LineReached)


@named
def test_pause_is_answered_within_half_a_second_and_again(path: pathlib.Path, work: Starter) -> None:
    started = work(path, break_on_start=False)
    settled(started)
    uninterruptible = path.stem in ("library", "summing")  # then the answer is that it cannot stop yet
    for _ in range(1 if uninterruptible else 2):
        asked = time.monotonic()
        started.send(Pause())
        answer = started.wait(Busy if uninterruptible else Stopped, timeout=5)
        assert time.monotonic() - asked < 1.0  # the promise is 0.5 s, on a machine that does nothing else
        started.send(Run())
    assert isinstance(answer, Busy) or answer.reason == "pause"


def test_a_stopped_recording_says_so(calls: Any) -> None:
    calls.send(Stop())
    assert calls.wait(Ended) == Ended(143, "stopped")
    assert calls.client.process.wait(5) == 143
    assert calls.events(RecordingCut)[0].reason == "the script was stopped"
    assert calls.events(ScriptEnded)[0].status == 143


def test_a_killed_worker_leaves_what_it_recorded(script: Writer, work: Starter) -> None:
    started = work(ENDLESS_LOOP, break_on_start=False)
    settled(started)
    before = len(started.events())
    started.client.kill()
    assert started.wait(Ended) == Ended(-signal.SIGKILL, "killed")
    assert len(started.events()) >= before > 10


def test_the_worker_ends_with_its_window(script: Writer, work: Starter) -> None:
    started = work(ENDLESS_LOOP, break_on_start=False)
    settled(started)
    started.client._connection.close()
    assert started.client.process.wait(5) == 143


def test_a_missing_script_is_refused_in_one_line(tmp_path: pathlib.Path, work: Starter) -> None:
    started = work(tmp_path / "nothing.py")
    assert "can't open file" in started.wait(Failed).message
    with pytest.raises(WorkerTimeout):
        started.wait(Stopped, timeout=5)


DEEP = """
from torch.autograd import Function
import torch

class Deeper(Function):
    @staticmethod
    def forward(ctx, x, left):
        ctx.left = left
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        if ctx.left:
            y = torch.ones(1, requires_grad=True)
            with torch.enable_grad():
                Deeper.apply(y, ctx.left - 1).backward()
            gradient = gradient + y.grad
        return gradient, None

x = torch.ones(1, requires_grad=True)
loss = Deeper.apply(x, 40)
loss.backward()
print(x.grad)
"""


def test_steps_follow_backward_passes_into_the_threads_that_they_go_on_in(script: Writer, work: Starter) -> None:
    started = work(script(DEEP))
    started.wait(Stopped)
    deepest = Breakpoint(path=path_of(started), line=16, condition="ctx.left == 2")
    assert go(started, RunUntil(deepest)) == 16
    frames = started.state().frames
    assert [each.parent for each in frames[1:]] == [each.id for each in frames[:-1]]  # through all threads
    assert len(frames) == 40
    inner = "(lambda y: Deeper.apply(y, 70).backward() or y.grad.item())(torch.ones(1, requires_grad=True))"
    started.send(Evaluate(1, f"exec('with torch.enable_grad(): print({inner})')"))
    assert started.wait(Evaluated).ok
    assert [go(started, Step("line", "over")) for _ in range(3)] == [15, 17, 18]
    assert go(started, Step("line", "over")) == 15  # the end of the ``with`` of the one that waits
