"""Batches of events come back as they went in."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import ANY_EVENTS, INTEGERS, any_event, exactly

from stridescope.engine.events import EVENTS, Event, LineReached, OpBegan, TensorMade
from stridescope.engine.recording.columns import (
    Batch,
    DamagedBatch,
    Kind,
    Schema,
    decode_kinds,
    encode,
    kinds_now,
    pack_ints,
    unpack_ints,
)


def round_trip(events: list[Event], schema: Schema | None = None) -> list[Event]:
    kept: dict[bytes, bytes] = {}

    def keep(values: bytes) -> bytes | None:
        if len(values) < 100:
            return None
        kept[values[:16]] = values
        return values[:16]

    encoded = encode([event.pack() for event in events], keep)
    kinds = decode_kinds(encoded.kinds)
    batch = Batch(7, kinds, encoded.body, schema or Schema(kinds_now()), lambda key, nbytes: kept[key])
    return [Event.unpack(wire) for wire in batch.wires()]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_event_comes_back_with_any_fields(event: type[Event], data: st.DataObject) -> None:
    events = data.draw(st.lists(any_event(event), min_size=1, max_size=6))
    assert list(map(exactly, map(dataclasses.astuple, round_trip(events)))) == list(
        map(exactly, map(dataclasses.astuple, events))
    )


@settings(deadline=None)
@given(ANY_EVENTS.filter(bool))
def test_mixed_events_come_back_in_order(events: list[Event]) -> None:
    assert [exactly(event.pack()) for event in round_trip(events)] == [exactly(event.pack()) for event in events]


@given(st.lists(INTEGERS))
def test_whole_numbers_come_back(numbers: list[int]) -> None:
    values = np.array(numbers, np.int64)
    assert unpack_ints(pack_ints(values), len(values)).tolist() == numbers


def test_a_recording_with_fewer_fields_is_filled_up() -> None:
    then = [Kind(kind.name, kind.fields[:-1] if kind.name == "LineReached" else kind.fields) for kind in kinds_now()]
    narrow = Schema(then)
    events: list[Event] = [LineReached(1, 2, 3), LineReached(1, 2, 4)]
    wires = [event.pack() for event in events]
    kinds = np.full(2, LineReached.code, np.uint8)
    columns = encode(wires, lambda values: None)
    whole = Batch(0, kinds, columns.body, Schema(kinds_now()), lambda key, nbytes: b"")
    assert [Event.unpack(wire) for wire in whole.wires()] == events
    assert list(narrow.rows(LineReached.code, [[1, 1], [2, 2]], 2)) == [
        (LineReached.code, 1, 2, 0),
        (LineReached.code, 1, 2, 0),
    ]


def test_an_event_of_the_future_is_refused() -> None:
    with pytest.raises(KeyError, match="Teleported"):
        Schema([*kinds_now(), Kind("Teleported", ())])


def test_touching_finds_the_events_that_name_a_tensor() -> None:
    events: list[Event] = [
        TensorMade(5, 6, (2,), (1,), 0, "float32", 0, 7, False),
        OpBegan("aten::mul", (4, 5), (), 1, 1, 1, 0, 1, 5),
        OpBegan("aten::mul", (4, 4), (5,), 1, 1, 1, 0, 1, 5),
        OpBegan("aten::mul", (), (), 1, 1, 1, 0, 1, 5),
        OpBegan("aten::mul", (5, 5), (), 1, 1, 1, 0, 1, 5),
    ]
    encoded = encode([event.pack() for event in events], lambda values: None)
    batch = Batch(10, decode_kinds(encoded.kinds), encoded.body, Schema(kinds_now()), lambda key, nbytes: b"")
    assert batch.touching("tensor", np.array([5])).tolist() == [10, 11, 14]
    assert encoded.touched["tensor"].tolist() == [0, 4, 5]


@pytest.mark.parametrize("cut", [0, 1, 10, 40])
def test_a_damaged_batch_is_refused(cut: int) -> None:
    encoded = encode([LineReached(1, 2, 3).pack()] * 50, lambda values: None)
    with pytest.raises(DamagedBatch):
        Batch(0, decode_kinds(encoded.kinds), encoded.body[:-cut] if cut else b"", Schema(kinds_now()), lambda *_: b"")
