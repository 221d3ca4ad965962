"""Recordings of every format there ever was stay readable: one of each is kept here."""

from __future__ import annotations

import pathlib
import shutil

import pytest
from streams import Run

from stridescope.engine.events import OutputWritten, ScriptEnded
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.store import FORMAT

HERE = pathlib.Path(__file__).parent
EVENTS = [*Run(7).of_length(1200), OutputWritten(1, "done\n"), ScriptEnded(0)]


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_a_recording_of_each_format(number: int, tmp_path: pathlib.Path) -> None:
    kept = shutil.copy(HERE / f"format-{number}.stride", tmp_path)
    with Recording.open(kept) as recording:
        assert recording.events(0, recording.steps - 1) == EVENTS
        assert recording.meta["script"] == "train.py" and recording.sources[1].text == "import torch\n"
        assert [output.text for output in recording.output(recording.steps)][-1] == "done\n"
        state = recording.state(recording.steps - 1)
        assert state.status == 0 and state.storages and state.nodes and state.allocator.blocks
