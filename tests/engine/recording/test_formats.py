"""Recordings of every format there ever was stay readable: one of each is kept here.

Those from format 2 on were never closed, so that their batches still hold bundles.
"""

from __future__ import annotations

import pathlib
import shutil

import pytest

from stridescope.engine.events import FrameEntered, OutputWritten, ScriptEnded
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.store import FORMAT

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_a_recording_of_each_format(number: int, tmp_path: pathlib.Path) -> None:
    kept = shutil.copy(HERE / f"format-{number}.stride", tmp_path)
    with Recording.open(kept) as recording:
        events = recording.events(0, recording.steps - 1)
        assert len(events) == 1202
        assert [events[0], *events[-2:]] == [
            FrameEntered(1, 0, 1, "<module>", 1),
            OutputWritten(1, "done\n"),
            ScriptEnded(0),
        ]
        assert recording.meta["script"] == "train.py" and recording.sources[1].text == "import torch\n"
        assert [output.text for output in recording.output(recording.steps)][-1] == "done\n"
        state = recording.state(recording.steps - 1)
        assert state.status == 0 and state.storages and state.nodes and state.allocator.blocks
