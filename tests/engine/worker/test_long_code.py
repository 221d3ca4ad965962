"""Lines of long code are told by their instructions: Python takes the longer for a line event the later it is."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import pytest

from stridescope.engine.events import FrameEntered, LineReached
from stridescope.engine.recording.reader import Recording
from stridescope.engine.worker.positions import is_long, line_starts

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="there probes in the code tell of the lines")

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts" / "as_python"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))
RECORD = """import sys
from stridescope.engine.worker import launch, positions, recorded
positions.LONG = int(sys.argv[1])
launch.leave(recorded.record_script(sys.argv[3], [], sys.argv[2]))
"""


def lines(script: pathlib.Path, long: int, folder: pathlib.Path) -> list[Any]:
    """Record a script, code of more than so many lines being long; return its calls and lines in order."""
    path = folder / f"{long}.stride"
    command = [sys.executable, "-P", "-c", RECORD, str(long), str(path), str(script)]
    subprocess.run(command, capture_output=True, input=b"Ada\n", timeout=120, check=False)
    with Recording.open(path) as recording:
        found = recording.events(0, recording.steps - 1)
    return [
        (event.frame, event.line) if isinstance(event, LineReached) else event.function
        for event in found
        if isinstance(event, LineReached | FrameEntered)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_both_ways_tell_the_same_lines(name: str, tmp_path: pathlib.Path) -> None:
    by_lines = lines(SCRIPTS / f"{name}.py", 1 << 30, tmp_path)
    if name == "threads":  # whose turn it is differs from run to run
        by_lines.sort(key=str)
    by_instructions = lines(SCRIPTS / f"{name}.py", -(1 << 30), tmp_path)
    assert by_lines and (sorted(by_instructions, key=str) if name == "threads" else by_instructions) == by_lines


def test_a_loop_far_down_a_script_is_long_code_and_each_of_its_lines_has_one_start(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "far.py"
    script.write_text("x = 0\n" * 300 + "for n in range(5):\n    x += n\n    x += 1\nprint(x)\n", encoding="utf-8")
    code = compile(script.read_text(encoding="utf-8"), str(script), "exec")
    assert is_long(code) and set(line_starts(code).values()) == set(range(1, 305))
    told = lines(script, 120, tmp_path)
    assert told[-17:] == [*[(1, 301), (1, 302), (1, 303)] * 5, (1, 301), (1, 304)]
