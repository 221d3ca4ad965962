"""Property: in a recorded session, going to a step forwards, backwards or by a jump gives the same state."""

from __future__ import annotations

import pathlib
import random
import subprocess
import sys

import pytest
from streams import seen

from stridescope.engine.recording.machine import Machine
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.state import advance

ROOT = pathlib.Path(__file__).parents[3]
SCRIPTS = [
    "tests/scripts/as_python/generators_async.py",
    "tests/scripts/as_python/decorators_exec.py",
    "tests/scripts/as_python/monkey_patching.py",
    "tests/scripts/as_python/threads.py",
    "tests/scripts/as_python/holds_locals.py",
    "tests/scripts/as_python/chained_errors.py",
    *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("resources/lessons/*.py"))),
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_way_to_a_step_gives_the_same_state(script: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.stride"
    command = [sys.executable, "-P", "-m", "stridescope.app.cli", "record", script, "-o", str(path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, timeout=120, check=False)
    with Recording.open(path) as recording:
        chooser = random.Random(script)
        steps = sorted(chooser.sample(range(recording.steps), min(25, recording.steps)))
        expected = _folded(recording, steps)
        for order in (steps, steps[::-1], chooser.sample(steps, len(steps))):
            assert [step for step in order if seen(recording.state(step)) != expected[step]] == []


def _folded(recording: Recording, steps: list[int]) -> dict[int, str]:
    """What the states at some steps show, folded from the events alone, from the first on."""
    machine, found = Machine(), {}
    for step, event in enumerate(recording.events(0, recording.steps - 1)):
        advance(machine, [event.pack()])
        if step in steps:
            found[step] = seen(machine.snapshot())
    return found
