"""Long loops without ops are rationed and say so; every other line is recorded each time."""

from __future__ import annotations

import pathlib
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine.events import FrameEntered, LineRationed, LineReached, NameBound, OpBegan, OutputWritten
from stridescope.engine.worker.protocol import Ended, Pause, Run, Step, Stopped
from stridescope.engine.worker.rationing import SILENT, UNFOLLOWED

ROUNDS = 3 * SILENT
LOOP = f"""\
total = 0
for i in range({ROUNDS}):
    total += i
    last = total & 7
end = total
"""


@pytest.fixture
def recorded(script: Callable[..., pathlib.Path], work: Callable[..., Any]) -> Callable[..., Any]:
    """Record a script to its end."""

    def run(source: str, **options: Any) -> Any:
        started = work(script(source), break_on_start=False, **options)
        assert started.wait(Ended, timeout=60).status == 0
        return started

    return run


def times(work: Any, line: int) -> int:
    return sum(event.line == line for event in work.events(LineReached))


def last_texts(work: Any) -> dict[str, str]:
    return {event.name: event.text for event in work.events(NameBound)}


def paused_and_stepped(work: Any, steps: int) -> Any:
    """Pause the script, step over some lines, and return the state there."""
    work.send(Pause())
    stopped = work.wait(Stopped)
    for _ in range(steps):
        work.send(Step("line", "over"))
        stopped = work.wait(Stopped)
    return work.state(stopped.step)


def test_a_long_loop_is_rationed_and_its_names_are_right_afterwards(recorded: Callable[..., Any]) -> None:
    done = recorded(LOOP)
    assert {event.line for event in done.events(LineRationed)} == {2, 3, 4}
    assert SILENT / 2 < times(done, 3) < SILENT * 2
    assert times(done, 5) == 1
    assert UNFOLLOWED in {event.text for event in done.events(NameBound)}
    wanted = sum(range(ROUNDS))
    assert last_texts(done) == {"total": str(wanted), "i": str(ROUNDS - 1), "last": str(wanted & 7), "end": str(wanted)}


def test_every_line_can_be_asked_for(recorded: Callable[..., Any]) -> None:
    done = recorded(LOOP.replace(str(ROUNDS), "20_000"), every_line=True)
    assert times(done, 3) == 20_000 and not done.events(LineRationed)


def test_lines_that_run_ops_are_never_rationed(recorded: Callable[..., Any]) -> None:
    done = recorded("import torch\nx = torch.ones(2)\nfor i in range(1500):\n    y = x\n    z = i\n    y.t()\n")
    assert times(done, 4) == times(done, 6) == 1500
    assert not [event for event in done.events(NameBound) if event.text == UNFOLLOWED]


def test_a_pause_in_a_rationed_loop_sees_everything_again(
    script: Callable[..., pathlib.Path], work: Callable[..., Any]
) -> None:
    started = work(script("n = 0\nwhile True:\n    n += 1\n    m = n\n"), break_on_start=False)
    started.until(LineRationed)
    names = paused_and_stepped(started, 4).frames[0].names
    assert int(names["n"].text) - int(names["m"].text) in (0, 1)
    started.send(Run())
    started.send(Pause())
    assert started.wait(Stopped).reason == "pause"


AMONG_OPS = f"""\
import torch
def double(k):
    return k * 2
def step(x):
    y = x + 1
    for i in range(60):
        k = double(i)
        j = k
    return y
x = torch.ones(2)
for turn in range({SILENT // 8}):
    x = step(x)
"""


def test_a_pause_in_a_call_that_was_not_recorded_and_has_deleted_an_argument(
    script: Callable[..., pathlib.Path], work: Callable[..., Any]
) -> None:
    source = """
        def spin(rounds, extra):
            del extra
            for i in range(rounds):
                k = i
        for _ in range(5000):
            spin(1, [])
        print("spinning", flush=True)
        spin(10 ** 12, [])
    """
    started = work(script(textwrap.dedent(source)), break_on_start=False)
    started.until(OutputWritten)
    frame = paused_and_stepped(started, 3).frames[-1]
    assert frame.function == "spin" and frame.line in (4, 5)
    assert {"rounds", "i", "k"} <= set(frame.names) and "extra" not in frame.names


def test_lines_and_functions_that_run_no_op_are_rationed_among_those_that_do(recorded: Callable[..., Any]) -> None:
    done = recorded(AMONG_OPS)
    assert times(done, 5) == times(done, 12) == SILENT // 8
    rounds = 60 * (SILENT // 8)
    assert times(done, 8) < rounds * 0.8 and times(done, 3) < rounds * 0.8
    assert {event.line for event in done.events(LineRationed)} >= {2, 8}


LINES_PER_OP = """\
import torch
x = torch.ones(2)
for turn in range(ROUNDS):
    y = x + turn
    for i in range(LINES):
        k = i
"""


def test_the_more_lines_run_for_an_op_the_sooner_they_are_rationed(recorded: Callable[..., Any]) -> None:
    few = recorded(LINES_PER_OP.replace("ROUNDS", "700").replace("LINES", "3"))
    many = recorded(LINES_PER_OP.replace("ROUNDS", "100").replace("LINES", "100"))
    assert times(few, 6) == 2100 and not few.events(LineRationed)
    assert times(few, 4) == 700 and times(many, 4) == 100
    assert times(many, 6) < 4000 and {event.line for event in many.events(LineRationed)} >= {5, 6}


LATE = """\
import torch
def f(i):
    if i < 5000:
        return i
    return torch.ones(2)
for i in range(5002):
    y = f(i)
"""


def test_a_function_that_runs_an_op_after_all_is_recorded_again(recorded: Callable[..., Any]) -> None:
    done = recorded(LATE)
    entered = [event for event in done.events(FrameEntered) if event.function == "f"]
    ops = list(done.events(OpBegan))
    assert len(entered) < 2000 and {op.frame for op in ops} <= {event.frame for event in entered}
    assert [op.line for op in ops] == [5] * len(ops) and ops
    assert last_texts(done)["i"] == "5001"


LATEST = """\
import torch
x = torch.ones(2)
def last(step):
    for i in range(40):
        inner = i * step
    return x + inner
for step in range(600):
    y = x + step
    for i in range(40):
        k = i * step
    z = last(step)
w = x * k
for i in range(40):
    k = -i
"""


def test_a_recorded_line_shows_what_rationed_lines_did_to_names(recorded: Callable[..., Any]) -> None:
    done = recorded(LATEST)
    assert {event.line for event in done.events(LineRationed)} >= {5, 10}
    assert {name: text for name, text in last_texts(done).items() if name in ("step", "k", "i", "inner")} == {
        "step": "599", "k": "-39", "i": "39", "inner": str(39 * 599)
    }  # fmt: skip
    before = next(op for op in done.events(OpBegan) if op.line == 12)
    everything = done.events()
    earlier = everything[: everything.index(before)]
    assert [event.text for event in earlier if isinstance(event, NameBound) and event.name == "k"][-1] == str(39 * 599)


WAYS_OUT = {
    "the end": "for k in range(N):\n    x = k\n",
    "else": "for k in range(N):\n    x = k\nelse:\n    seen = k\n",
    "break": "k = 0\nwhile True:\n    k += 1\n    if k == N - 1:\n        break\n",
    "the end of its numbers": (
        "numbers = iter(range(N))\ntry:\n    while True:\n        k = next(numbers)\n        x = k\n"
        "except StopIteration:\n    seen = k\n"
    ),
    "an error": (
        "k = 0\ntry:\n    while k < N:\n        k += 1\n        1 // (N - 1 - k)\n"
        "except ZeroDivisionError:\n    seen = k\n"
    ),
    "finally": (
        "try:\n    try:\n        for k in range(N):\n            x = [][k - N + 1:] or 1 // (N - 1 - k)\n"
        "    finally:\n        seen = k\nexcept ZeroDivisionError:\n    pass\n"
    ),
    "with": (
        "import contextlib\nwith contextlib.suppress(ZeroDivisionError):\n    for k in range(N):\n"
        "        x = 1 // (N - 1 - k)\n"
    ),
    "match": (
        "for k in range(N):\n    match k - N + 1:\n        case 0:\n            seen = k\n        case _:\n"
        "            x = k\n"
    ),
}


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("where", ["module", "function"])
def test_wherever_a_rationed_loop_is_left_to_its_names_are_right(
    way: str, where: str, recorded: Callable[..., Any]
) -> None:
    body = WAYS_OUT[way] + "seen = k\n"
    if where == "function":
        body = "def f():\n" + textwrap.indent(body, "    ") + "f()\n"
    source = f"N = {ROUNDS}\n{body}"
    done = recorded(source)
    events = done.events()
    rationed = {event.line for event in events if isinstance(event, LineRationed)}
    first = 1 + next(number for number, text in enumerate(source.splitlines()) if "seen = k" in text)
    assert rationed and first not in rationed
    reached = next(at for at, event in enumerate(events) if isinstance(event, LineReached) and event.line == first)
    told = [event.text for event in events[:reached] if isinstance(event, NameBound) and event.name == "k"]
    assert told[-1] == str(ROUNDS - 1)
