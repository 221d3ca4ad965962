"""Stepping in a recording: over, into, out, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from stridescope.app import replay
from stridescope.engine import events as ev
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.writer import Writer
from stridescope.engine.worker.client import WorkerClient
from stridescope.engine.worker.protocol import Ended, Step, Stopped

GENERATOR = """import threading
def given():
    yield 1
    yield 2

def work():
    return 3
thread = threading.Thread(target=work)

for value in given():
    value += 1
thread.start()
thread.join()
print(value)
"""


@pytest.fixture
def calls(tmp_path: Path) -> Recording:
    """A script whose line 2 calls a function of two lines."""
    script = tmp_path / "calls.py"
    script.write_text("def f():\n    1\n    2\n3\nf()\n4\n")
    writer = Writer(tmp_path / "calls.stride", {})
    journal = ev.Journal()
    writer.attach(journal)
    assert journal.emit is not None
    for event in (
        ev.SourceSeen(1, str(script)),
        ev.FrameEntered(1, 0, 1, "<module>", 1),
        ev.LineReached(1, 1, 4),
        ev.LineReached(1, 1, 5),
        ev.FrameEntered(2, 1, 1, "f", 1),
        ev.LineReached(2, 1, 2),
        ev.LineReached(2, 1, 3),
        ev.FrameLeft(2),
        ev.LineReached(1, 1, 6),
        ev.FrameLeft(1),
        ev.ScriptEnded(0),
    ):
        journal.emit(event.pack())
    writer.close(0)
    return Recording.open(tmp_path / "calls.stride")


@pytest.mark.parametrize(
    ("mode", "start", "expected"),
    [
        ("over", -1, 2),
        ("over", 3, 8),
        ("into", 3, 5),
        ("over", 5, 6),
        ("out", 5, 8),
        ("over", 8, 10),
        ("over", 10, None),
    ],
)
def test_forward(calls: Recording, mode: str, start: int, expected: int | None) -> None:
    assert replay.next_stop(calls, start, "line", mode) == expected


@pytest.mark.parametrize(("mode", "start", "expected"), [("over", 8, 3), ("into", 8, 6), ("over", 2, None)])
def test_backward(calls: Recording, mode: str, start: int, expected: int | None) -> None:
    assert replay.previous_stop(calls, start, "line", mode) == expected


def test_a_generator_that_waits_is_no_deeper_call_and_another_thread_no_stop(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(GENERATOR, encoding="utf-8")
    path = tmp_path / "waits.stride"
    with WorkerClient.start(str(script), (), str(path)) as worker:
        lived = [worker.wait(Stopped).step]
        while isinstance(stop := _over(worker), Stopped):
            lived.append(stop.step)
    with Recording.open(path) as recording:
        past = [lived[0]]
        while (found := replay.next_stop(recording, past[-1], "line")) is not None:
            past.append(found)
        assert past[:-1] == lived and past[-1] == recording.steps - 1
        back = [lived[-1]]
        while (found := replay.previous_stop(recording, back[-1], "line")) is not None:
            back.append(found)
        assert back[::-1] == lived
        lines = [recording.state(step).line for step in lived]
    assert lines[:10] == [1, 2, 6, 8, 10, 11, 10, 11, 10, 12]


def _over(worker: WorkerClient) -> Stopped | Ended:
    worker.send(Step("line", "over"))
    return worker.wait((Stopped, Ended))


def test_grains(strides: Recording) -> None:
    assert replay.next_stop(strides, 4, "event", "into") == 5
    assert replay.next_stop(strides, 4, "event", "over") == 9
    assert replay.next_stop(strides, 4, "op") == int(strides.ops()[1])
    assert replay.next_stop(strides, 4, "line") == int(strides.lines()[2])


def test_over_walks_backward_node_after_node(strides: Recording) -> None:
    step, seen = int(strides.lines()[-1]), []
    while (found := replay.next_stop(strides, step, "op")) is not None:
        seen.append(step := found)
    assert seen == [*strides.backwards().tolist(), strides.steps - 1]


def test_into_an_op_and_out_again(strides: Recording) -> None:
    op = int(strides.ops()[6])
    inside = replay.next_stop(strides, op, "op", "into")
    assert inside == op + 1
    assert replay.next_stop(strides, inside, "op", "out") == int(strides.lines()[-2])


def test_nearest_and_line(strides: Recording) -> None:
    ops = strides.ops()
    assert replay.nearest_stop(strides, int(ops[3]) + 1, "op") == ops[3]
    at = replay.stop_at_line(strides, 0, 1, 6)
    assert at is not None and strides.state(at).line == 6
    assert replay.stop_at_line(strides, at, 1, 6) is None
