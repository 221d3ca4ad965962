"""Whatever a script does to its process costs the worker only: the window gets an answer, the recording stays whole."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine.events import ExceptionRaised, FrameEntered, LineReached, NameBound, OutputWritten, RecordingCut
from stridescope.engine.worker.protocol import (
    Breakpoint,
    Ended,
    Evaluate,
    Evaluated,
    InputWanted,
    Pause,
    Run,
    SendInput,
    SetBreakpoints,
    Step,
    Stop,
    Stopped,
)

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts" / "hardship"
Starter = Callable[..., Any]


def output(work: Any, stream: int = 1) -> str:
    return "".join(event.text for event in work.events(OutputWritten) if event.stream == stream)


@pytest.fixture
def run(work: Starter) -> Starter:
    """Start a script of the collection, not stopped at its first line."""

    def start(name: str, **options: Any) -> Any:
        return work(SCRIPTS / f"{name}.py", **{"break_on_start": False, **options})

    return start


def test_os_exit_ends_with_its_status_and_all_events(run: Starter) -> None:
    work = run("leaves_at_once")
    assert work.wait(Ended) == Ended(7, "finished")
    assert output(work) == "before\n"
    assert work.events(LineReached)[-1].line == 6


@pytest.mark.skipif(sys.platform == "win32", reason="there a crash has another status")
@pytest.mark.parametrize(
    ("name", "number", "line"),
    [
        ("crashes", "SIGSEGV", 6),
        ("aborts", "SIGABRT", 6),
        ("sends_itself", "SIGSEGV", 7),
        ("crashes_in_thread", "SIGSEGV", 8),
    ],
)
def test_a_crash_is_told_with_its_last_words(run: Starter, name: str, number: str, line: int) -> None:
    work = run(name)
    assert work.wait(Ended) == Ended(-signal.Signals[number], "killed")
    kind, *calls = work.client.crash.splitlines()
    assert kind == {"SIGSEGV": "Segmentation fault", "SIGABRT": "Aborted"}[number]
    assert calls and not any("worker" in call for call in calls)
    assert "thread" in name or f'{name}.py", line {line}' in calls[-1]
    if sys.platform == "linux":  # elsewhere the last hundredths of a second are lost
        assert work.events(LineReached)[-1].line >= line
        assert [event.text for event in work.events(NameBound) if event.name == "value"] == ["1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_crash_of_a_child_is_its_own(run: Starter) -> None:
    work = run("child_crashes")
    assert work.wait(Ended) == Ended(0, "finished")
    assert output(work) == f"{signal.SIGSEGV.value}\n"
    assert work.events(LineReached)[-1].line == 10


def test_a_failure_can_be_looked_into(run: Starter) -> None:
    work = run("fails")
    stopped = work.wait(Stopped)
    assert (stopped.reason, stopped.detail) == ("error", "ZeroDivisionError: division by zero")
    assert [frame.function for frame in work.state(stopped.step).frames] == ["<module>", "outer", "divide"]
    (raised,) = work.events(ExceptionRaised)
    assert (raised.line, raised.column, raised.end_column) == (5, 11, 28)
    for number, (text, level, answer) in enumerate(
        [("a, b", 0, "(8, 4)"), ("twice", 1, "8"), ("__name__", 2, "'__main__'")]
    ):
        work.send(Evaluate(number, text, level))
        assert work.wait(Evaluated).text == answer
    work.send(Run())
    assert work.wait(Ended) == Ended(1, "finished")
    assert output(work) == "about to fail\n"
    assert output(work, 2).startswith("Traceback") and output(work, 2).endswith("ZeroDivisionError: division by zero\n")
    assert "engine/worker" not in output(work, 2)


def test_input_is_asked_for_and_given(run: Starter) -> None:
    work = run("asks")
    work.wait(InputWanted)
    assert output(work) == "name? "
    work.send(SendInput("Ada\n"))
    work.wait(InputWanted)
    work.send(SendInput("one\ntwo\n" * 20_000, end=True))
    assert work.wait(Ended).status == 0
    assert output(work) == "name? hello Ada\n40000 lines\n"


def test_a_script_that_waits_for_input_can_be_paused_and_stopped(run: Starter) -> None:
    work = run("asks")
    work.wait(InputWanted)
    work.send(Pause())
    assert work.wait(Stopped).reason == "pause"
    work.send(Stop())
    assert work.wait(Ended).reason == "stopped"


def test_a_flood_of_output_can_be_paused_and_stopped(run: Starter) -> None:
    work = run("floods")
    work.send(Pause())
    work.wait(Stopped)
    work.send(Run())
    time.sleep(0.5)  # the flood has to run for a while; there is nothing to wait for
    asked = time.monotonic()
    work.send(Stop())
    assert work.wait(Ended).reason == "stopped"
    assert time.monotonic() - asked < 1.0
    assert set(output(work)) == {"x", "\n"}


@pytest.mark.skipif(sys.platform == "win32", reason="there the memory of a process is not looked at")
def test_a_memory_limit_ends_the_script_and_keeps_the_recording(run: Starter) -> None:
    work = run("hoards", memory_limit=200 << 20)
    assert work.wait(Ended, timeout=30) == Ended(137, "memory")
    assert "limit of 209715200 bytes" in work.events(RecordingCut)[0].reason
    assert len(work.events(LineReached)) > 100


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit to address space")
def test_a_huge_request_is_refused_as_on_a_small_machine(run: Starter) -> None:
    work = run("grabs", memory_limit=200 << 20)
    assert work.wait(Ended).status == 0
    assert output(work) == "refused\n"


def test_output_past_pythons_streams_is_recorded(run: Starter) -> None:
    work = run("child_writes")
    assert work.wait(Ended).status == 0
    assert sorted(output(work).splitlines()) == ["child", "descriptor", "python"]
    assert output(work, 2) == "child error\n"


def test_child_processes_work_and_record_nothing(run: Starter) -> None:
    work = run("forks")
    assert work.wait(Ended, timeout=120).status == 0, output(work, 2)
    import multiprocessing

    methods = multiprocessing.get_all_start_methods()
    assert output(work) == "".join(f"{method} [0, 1, 4, 9]\n" for method in methods)
    assert not [event for event in work.events(FrameEntered) if event.function == "square"]


def test_workers_of_a_dataloader_and_a_pool_record_nothing_and_give_their_batches(run: Starter) -> None:
    work = run("loads_in_workers")
    assert work.wait(Ended, timeout=90) == Ended(0, "finished")
    assert output(work) == "[[0, 0], [1, 1], [2, 4], [3, 9]]\n[[4, 16], [5, 25], [6, 36], [7, 49]]\n[1, 8, 27]\n"
    assert {event.function for event in work.events(FrameEntered)} >= {"<module>", "Squares"}
    assert "cube" not in {event.function for event in work.events(FrameEntered)}


def test_a_step_over_a_batch_from_worker_processes_ends_at_the_next_line(run: Starter) -> None:
    work = run("loads_in_workers", breakpoints=(Breakpoint(path=str(SCRIPTS / "loads_in_workers.py"), line=22),))
    for _ in range(2):
        assert work.wait(Stopped, timeout=60).reason == "breakpoint"
        work.send(Step("line", "over"))
        stopped = work.wait(Stopped, timeout=60)
        assert work.state(stopped.step).line == 23
        work.send(Run())
    work.wait(Stopped, timeout=60)  # the loop's last look for a batch
    work.send(Run())
    assert work.wait(Ended, timeout=90).status == 0


def test_threads_have_their_own_frames(run: Starter) -> None:
    work = run("two_threads")
    assert work.wait(Ended).status == 0
    frames = [event.frame for event in work.events(FrameEntered) if event.function == "work"]
    assert len(frames) == 2
    lines = work.events(LineReached)
    for frame in frames:
        assert sum(event.frame == frame and event.line == 9 for event in lines) == 20
    assert output(work) == "[('a', 190), ('b', 190)]\n"


def test_a_step_stays_in_its_thread(run: Starter) -> None:
    work = run("two_threads", breakpoints=(Breakpoint(path=str(SCRIPTS / "two_threads.py"), line=9),))
    stopped = work.wait(Stopped)
    frame = work.events()[stopped.step].frame
    work.send(SetBreakpoints(()))
    for _ in range(6):
        work.send(Step("line", "over"))
        stopped = work.wait(Stopped)
        assert work.events()[stopped.step].frame == frame
    work.send(Run())
    assert work.wait(Ended).status == 0


@pytest.mark.parametrize("name", ["closes_streams", "uses_settrace"])
def test_what_a_script_does_to_itself_is_its_own_affair(name: str, run: Starter) -> None:
    work = run(name)
    assert work.wait(Ended) == Ended(0, "finished"), output(work, 2)
    expected = {"closes_streams": "first\nlast\n", "uses_settrace": "['call', 'line', 'line', 'return']\n"}
    assert output(work) == expected[name]


def test_ranks_that_a_script_spawns_train_together_and_record_nothing(run: Starter) -> None:
    work = run("trains_together")
    assert work.wait(Ended, timeout=90) == Ended(0, "finished"), output(work, 2)
    assert output(work) == "gradient 1.5\nover\n"
    assert "work" not in {event.function for event in work.events(FrameEntered)}


def test_a_rank_that_dies_is_told_to_the_others_and_the_script_goes_on(work: Starter) -> None:
    script = work(SCRIPTS / "trains_together.py", "dies", break_on_start=False)
    assert script.wait(Ended, timeout=90) == Ended(0, "finished"), output(script, 2)
    told = "Connection closed by peer [127.0.0.1]: rank 1 has ended or left the process group\n"
    assert output(script) == f"gradient 1.5\n{told}[0, 3]\nover\n"
