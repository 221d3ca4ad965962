"""Recordings of made-up runs."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable, Sequence

import pytest

from stridescope.engine.events import Event, Journal
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.writer import Writer

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # for streams.py

Record = Callable[..., Recording]


def emit(journal: Journal, events: Sequence[Event]) -> None:
    """Say the events as the engine would."""
    assert journal.emit is not None
    for event in events:
        journal.emit(event.pack())


@pytest.fixture
def record(tmp_path: pathlib.Path) -> Record:
    """Record events in a file of their own and open it; ``flushes`` are the lengths after which to flush."""

    def recorded(events: Sequence[Event], flushes: Sequence[int] = (), **meta: object) -> Recording:
        writer, journal = Writer(tmp_path / "run.stride", meta), Journal()
        writer.attach(journal)
        start = 0
        for stop in sorted({*flushes, len(events)}):
            emit(journal, events[start:stop])
            writer.flush()
            start = stop
        writer.close(status=0)
        return Recording.open(tmp_path / "run.stride")

    return recorded
