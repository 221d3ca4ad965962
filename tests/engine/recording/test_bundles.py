"""Bundles: events that are sent as one row are the same events to everyone who reads the recording."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from streams import Run, seen

from stridescope.engine.events import EVENTS, Event, Journal, Wire
from stridescope.engine.events.bundles import BUNDLES, FIRST_BUNDLE, OPENED, Bundle
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.writer import Writer


def closed(bundle: Bundle, wires: list[Wire]) -> list[Any] | None:
    """The fields of a row that opens to these events, None where there is none: the opposite of ``open``."""
    if bytes(wire[0] for wire in wires) != bundle.codes:
        return None
    fields: dict[int, Any] = {}
    for (_, sources), wire in zip(bundle.parts, wires, strict=True):
        for source, value in zip(sources, wire[1:], strict=True):
            if isinstance(source, list):
                continue
            if source < 0 and len(value) != 1:
                return None
            fields.setdefault(abs(source), value if source > 0 else value[0])
    return [fields[position] for position in sorted(fields)]


def number_of(text: str) -> Any:
    """The small value that has this text; the text itself where there is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def row_of(code: int, wires: list[Wire]) -> Wire | None:
    """The row that opens to these events, in the bundle's form."""
    fields = closed(BUNDLES[code], wires)
    if fields is None:
        return None
    match BUNDLES[code].form:
        case "placed":
            fields = [*fields[:-6], tuple(fields[-6:])]
        case "called":
            op, inputs, arguments, *place = fields
            place, more = place[:6], place[6:]
            names = iter(inputs)
            tensors = [isinstance(a, str) and a.startswith("%") for a in arguments]
            values = [next(names) if tensor else a for a, tensor in zip(arguments, tensors, strict=True)]
            fields = [op, "".join("t" if tensor else "." for tensor in tensors), tuple(place), *more, *values]
        case "counted":
            fields[2] = number_of(fields[2])
    row = (code, *fields)
    return row if BUNDLES[code].open(row) == wires else None


def bundled(wires: list[Wire]) -> list[Wire]:
    """The same events, in bundles wherever that is possible."""
    rows, at = [], 0
    while at < len(wires):
        for code in sorted(BUNDLES, key=lambda code: -len(BUNDLES[code].codes)):
            parts = wires[at : at + len(BUNDLES[code].codes)]
            if (row := row_of(code, parts)) is not None:
                rows.append(row)
                at += len(parts)
                break
        else:
            rows.append(wires[at])
            at += 1
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_a_recording_of_bundles_reads_like_one_of_single_events(seed: int, tmp_path: pathlib.Path) -> None:
    events = Run(seed).of_length(2500)
    rows = bundled([event.pack() for event in events])
    assert sum(row[0] >= FIRST_BUNDLE for row in rows) > 100
    writer, journal = Writer(tmp_path / "run.stride", {}), Journal()
    writer.attach(journal)
    assert journal.emit is not None
    for row in rows:
        (journal.bundle if row[0] >= FIRST_BUNDLE else journal.emit)(row)
    assert writer.steps == len(events) == writer.flush()
    with Recording.open(tmp_path / "run.stride") as growing:
        assert growing.events(0, growing.steps - 1) == events
        assert [growing.code(step) for step in range(len(events))] == [event.code for event in events]
        states = [seen(growing.state(step)) for step in range(0, len(events), 211)]
    writer.close(status=0)
    with Recording.open(tmp_path / "run.stride") as ended:
        assert ended.events(0, ended.steps - 1) == events
        assert [seen(ended.state(step)) for step in range(0, len(events), 211)] == states


def test_who_takes_no_bundles_is_sent_their_events() -> None:
    events = Run(5).of_length(800)
    heard: list[Wire] = []
    journal = Journal()
    journal.start(heard.append)
    for row in bundled([event.pack() for event in events]):
        (journal.bundle if row[0] >= FIRST_BUNDLE else heard.append)(row)
    assert [Event.unpack(wire) for wire in heard] == events


def test_codes_of_events_and_bundles_do_not_meet() -> None:
    assert len(EVENTS) <= FIRST_BUNDLE and max(BUNDLES) < 256


@pytest.mark.parametrize("row", [(OPENED, "add", "tt", (0,) * 6, 1), (OPENED, "add", "t", (0,), 1), (OPENED, "add")])
def test_a_row_that_is_none_of_its_kind_is_refused(row: Wire) -> None:
    with pytest.raises((ValueError, LookupError)):
        BUNDLES[OPENED].open(row)


SCRIPT = """
import gc, sys
import stridescope.engine.torch as torch
from stridescope.engine.events import journal
from stridescope.engine.events.bundles import BUNDLES
gc.disable()  # when it frees cycles depends on how much else there is
rows = []
journal.start(rows.append, 1 << 16, bundles=sys.argv[1] == "bundles")
w, b = torch.ones(4, requires_grad=True), torch.arange(4.0)
y = (w * b + 2).exp().sum()
y.backward()
view = b.view(2, 2).t()
view.add_(1)
b.data = torch.zeros(3)
with torch.inference_mode():
    kept = w * 2
big = torch.randn(200, 200, requires_grad=True)
(big @ big).relu().sum().backward()
torch.stack([w, w]).softmax(1)[0]
journal.stop()
events = [event for row in rows for event in (BUNDLES[row[0]].open(row) if row[0] in BUNDLES else [row])]
print(len(rows))
print("\\n".join(map(repr, events)))
"""


def test_the_engine_says_the_same_in_bundles_and_in_single_events() -> None:
    said = {}
    for way in ("bundles", "events"):
        command = [sys.executable, "-P", "-c", SCRIPT, way]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        rows, said[way] = done.stdout.split("\n", 1)
        assert (int(rows) < len(said[way].splitlines())) is (way == "bundles")
    assert said["bundles"] == said["events"]
