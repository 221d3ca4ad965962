"""A batch as it is first written: events and bundles of them as they came, a fraction of the cost of columns.

The recording's thread shares the script's time, so it only packs; the batches become columns when the recording
ends. A recording that still grows, or whose writer was killed, holds rough batches: they read like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from stridescope.engine.events import Event, Wire
from stridescope.engine.events.bundles import INLINE
from stridescope.engine.recording.bundled import Kinds
from stridescope.engine.recording.columns import (
    Batch,
    DamagedBatch,
    Encoded,
    Ints,
    KeepBytes,
    ReadBytes,
    Schema,
    as_tuples,
    decode_kinds,
    decompress,
    encode,
    pack_value,
    unpack_values,
)

_MARK = b"\0"  # no zstd frame begins with it


def pack_rough(batch: Sequence[Wire], kinds: bytes, keep: KeepBytes, schema: Schema) -> tuple[bytes, bytes]:
    """Return the kinds and the rows of a batch of rows whose codes are ``kinds``, ready to be compressed.

    ``keep`` is as for :func:`.columns.encode`.
    """
    holders = schema.bundles.holders
    rows = np.flatnonzero(schema.bundles.holds[np.frombuffer(kinds, np.uint8)]).tolist()
    long = [(at, values) for at in rows if len(values := batch[at][holders[kinds[at]]]) > INLINE]
    apart = [(at, key) for at, values in long if (key := keep(values)) is not None]
    if apart:
        batch = list(batch)
        for at, key in apart:
            batch[at] = _kept_apart(batch[at], holders[kinds[at]], key)
    return kinds, pack_value(batch)


def rough_body(packed: Any) -> bytes:
    """Return the body of a batch, given its compressed rows."""
    return b"".join((_MARK, packed))


def _kept_apart(wire: Wire, position: int, key: bytes) -> Wire:
    return (*wire[:position], (key, len(wire[position])), *wire[position + 1 :])


def is_rough(body: bytes) -> bool:
    """Whether the body of a batch is one of :func:`rough_body`."""
    return body.startswith(_MARK)


class RoughBatch:
    """A rough batch, read like a :class:`Batch`; its columns are made when they are asked for."""

    def __init__(self, first: int, kinds: bytes, body: bytes, schema: Schema, read: ReadBytes) -> None:
        self.first, self._schema, self._read = first, schema, read
        codes = decode_kinds(kinds)
        self.kinds: Kinds = schema.bundles.kinds(codes)
        try:
            self._rows: list[list[Any]] = unpack_values(decompress(body[len(_MARK) :]))
        except (ValueError, msgspec.MsgspecError) as error:
            raise DamagedBatch(f"events from step {first} on cannot be read ({error})") from error
        if len(self._rows) != len(codes):
            raise DamagedBatch(f"events from step {first} on are not all there")

    def as_columns(self) -> Encoded | None:
        """Return the batch as the recording keeps it in the end; None where an event's fields are not of its types."""
        try:
            return self._encoded
        except (TypeError, ValueError):
            return None

    @cached_property
    def _tuples(self) -> list[Wire]:
        """The events as they were packed: tuples at every depth, bytes kept elsewhere as their key and length."""
        bundles = self._schema.bundles
        for row in self._rows:
            places = bundles.nested[row[0]]
            for at in range(len(row)) if places is None else places:
                if type(row[at]) is list:
                    row[at] = as_tuples(row[at])
        events = list(bundles.events(self._rows))
        if len(events) != len(self.kinds):
            raise DamagedBatch(f"events from step {self.first} on are not all there")
        return events

    @cached_property
    def _encoded(self) -> Encoded:
        return encode(self._tuples, lambda values: None, self._schema.kinds)

    @cached_property
    def _batch(self) -> Batch:
        return Batch(self.first, self.kinds, self._encoded.body, self._schema, self._read)

    def steps_of(self, event: type[Event]) -> Ints:
        """Return the steps of all events of this kind."""
        return np.flatnonzero(self.kinds == self._schema.recorded.get(event.__name__, 255)) + self.first

    def ints(self, event: type[Event], name: str) -> Ints:
        """Return an integer field of all events of this kind, in order."""
        return self._batch.ints(event, name) if len(self.steps_of(event)) else np.zeros(0, np.int64)

    def touching(self, entity: str, ids: Ints) -> Ints:
        """Return the steps whose events name one of these tensors, storages, nodes, counters or frames."""
        columns = self.as_columns()
        touched = columns.touched.get(entity) if columns is not None else None
        if touched is None or not np.isin(ids, touched).any():
            return np.zeros(0, np.int64)
        return self._batch.touching(entity, ids)

    def wires(self) -> list[Wire]:
        """Return all events in order, as this engine's wire tuples."""
        if not self._schema.current:
            return self._batch.wires()
        holders, wires = self._schema.holders, self._tuples
        if not any(np.any(self.kinds == code) for code in holders):
            return wires
        return [self._with_bytes(wire, holders[wire[0]]) if wire[0] in holders else wire for wire in wires]

    def _with_bytes(self, wire: Wire, at: int) -> Wire:
        kept = wire[at]
        return (*wire[:at], self._read(*kept), *wire[at + 1 :]) if type(kept) is tuple else wire
