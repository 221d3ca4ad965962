"""Workers and scripts for the tests: every one goes through the public door and is closed at the end."""

from __future__ import annotations

import functools
import pathlib
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stridescope.engine.events import Event
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.store import RecordingError
from stridescope.engine.worker.client import WorkerClient

LAUNCH = "import sys; from stridescope.engine.worker import launch, recorded; launch.leave({})"
RUN = LAUNCH.format("launch.run_script(sys.argv[2], sys.argv[3:], module=bool(sys.argv[1]))")
RECORD = LAUNCH.format("recorded.record_script(sys.argv[2], sys.argv[3:], sys.argv[1])")
Outcome = tuple[int, str, str]
Runner = Callable[..., Outcome]


def _outcome(*command: object, text_encoding: str = "utf-8", **options: Any) -> Outcome:
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, timeout=60, **{"input": b"", **options}
    )
    return done.returncode, done.stdout.decode(text_encoding), done.stderr.decode(text_encoding)


@pytest.fixture
def python() -> Runner:
    """Run Python itself with these arguments and return its exit status, output and errors."""
    return _outcome


@pytest.fixture
def run() -> Runner:
    """Run a script (or with ``module`` a module) on the engine, in a process of its own."""

    def run(*command: object, module: bool = False, **options: Any) -> Outcome:
        return _outcome("-P", "-c", RUN, "m" if module else "", *command, **options)

    return run


@pytest.fixture
def record(tmp_path: pathlib.Path) -> Runner:
    """Run a script on the engine and record it into ``recorded.stride``."""
    return functools.partial(_outcome, "-P", "-c", RECORD, tmp_path / "recorded.stride")


@pytest.fixture
def script(tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
    """Write a script (text or bytes) into a folder of its own and return its path."""

    def write(source: str | bytes, name: str = "user.py") -> pathlib.Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source if isinstance(source, bytes) else textwrap.dedent(source).encode())
        return path

    return write


class Work:
    """A worker with its recording."""

    def __init__(self, client: WorkerClient, recording: pathlib.Path) -> None:
        self.client, self.recording = client, recording
        self.send, self.wait = client.send, client.wait

    def events(self, *kinds: type[Event]) -> list[Any]:
        """The events of these kinds (all, when none is named) recorded so far."""
        with Recording.open(self.recording) as recording:
            everything = recording.events(0, recording.steps - 1) if recording.steps else []
        return [event for event in everything if not kinds or isinstance(event, kinds)]

    def until(self, kind: type[Event], timeout: float = 20.0) -> None:
        """Wait until an event of a kind is in the recording, which grows by itself."""
        end = time.monotonic() + timeout
        while not self._has(kind):
            assert time.monotonic() < end, f"no {kind.__name__} is recorded"
            time.sleep(0.02)  # the file tells nobody that it grows

    def _has(self, kind: type[Event]) -> bool:
        try:
            return bool(self.events(kind))
        except RecordingError:  # not there yet
            return False

    def state(self, step: int | None = None) -> Any:
        """The state at a step, the last one by default."""
        with Recording.open(self.recording) as recording:
            return recording.state(recording.steps - 1 if step is None else step)


@pytest.fixture
def work(tmp_path: pathlib.Path) -> Iterator[Callable[..., Work]]:
    """Start a worker on a script; it is killed at the end of the test if it still runs."""
    started: list[WorkerClient] = []

    def start(path: pathlib.Path, *argv: str, **options: Any) -> Work:
        recording = tmp_path / f"{len(started)}.stride"
        started.append(WorkerClient.start(str(path), argv, str(recording), **options))
        return Work(started[-1], recording)

    yield start
    for client in started:
        client.close()
