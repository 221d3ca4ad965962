"""A batch as it is first written: the events as they came, which costs a fraction of making columns.

The recording's thread shares the script's time, so it only packs; the batches become columns when the recording
ends. A recording that still grows, or whose writer was killed, holds rough batches: they read like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import zstandard

from stridescope.engine.events import Event, Wire
from stridescope.engine.recording.columns import (
    Batch,
    DamagedBatch,
    Encoded,
    Ints,
    KeepBytes,
    Kinds,
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
Mend = Callable[[list[Any]], Wire]


def pack_rough(batch: Sequence[Wire], keep: KeepBytes, schema: Schema) -> tuple[bytes, bytes]:
    """Return the packed kinds and the body of a batch; ``keep`` is as for :func:`.columns.encode`."""
    kinds = bytes([wire[0] for wire in batch])
    holders = schema.holders
    if any(map(kinds.__contains__, holders)):
        batch = [_kept_apart(wire, holders[wire[0]], keep) if wire[0] in holders else wire for wire in batch]
    compress = zstandard.ZstdCompressor(level=1).compress
    return compress(kinds), _MARK + compress(pack_value(batch))


def _kept_apart(wire: Wire, position: int, keep: KeepBytes) -> Wire:
    values = wire[position]
    key = keep(values)
    return wire if key is None else (*wire[:position], (key, len(values)), *wire[position + 1 :])


def is_rough(body: bytes) -> bool:
    """Whether the body of a batch is one of :func:`pack_rough`."""
    return body.startswith(_MARK)


class RoughBatch:
    """A rough batch, read like a :class:`Batch`; its columns are made when they are asked for."""

    def __init__(self, first: int, kinds: bytes, body: bytes, schema: Schema, read: ReadBytes) -> None:
        self.first, self._schema, self._read = first, schema, read
        self.kinds: Kinds = decode_kinds(kinds)
        try:
            self._rows: list[list[Any]] = unpack_values(decompress(body[len(_MARK) :]))
        except (ValueError, msgspec.MsgspecError) as error:
            raise DamagedBatch(f"events from step {first} on cannot be read ({error})") from error
        if len(self._rows) != len(self.kinds):
            raise DamagedBatch(f"events from step {first} on are not all there")

    def as_columns(self) -> Encoded | None:
        """Return the batch as the recording keeps it in the end; None where an event's fields are not of its types."""
        try:
            return self._encoded
        except (TypeError, ValueError):
            return None

    @cached_property
    def _encoded(self) -> Encoded:
        rows = [tuple(map(as_tuples, row)) for row in self._rows]
        return encode(rows, lambda values: None, self._schema.kinds)

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
        mends = [self._mend(code) for code in range(len(self._schema.kinds))]
        return [tuple(row) if (mend := mends[row[0]]) is None else mend(row) for row in self._rows]

    def _mend(self, code: int) -> Mend | None:
        """Return what turns a row of this kind into its wire tuple, None where nothing but its own type changes."""
        forms = [field.form for field in self._schema.kinds[code].fields]
        nested = [at for at, form in enumerate(forms, 1) if form in ("ints", "any")]
        held = self._schema.holders.get(code)
        if not nested and held is None:
            return None

        def mended(row: list[Any]) -> Wire:
            for at in nested:
                if type(row[at]) is list:
                    row[at] = as_tuples(row[at])
            if held is not None and type(row[held]) is list:
                return (*row[:held], self._read(*row[held]), *row[held + 1 :])
            return tuple(row)

        return mended
