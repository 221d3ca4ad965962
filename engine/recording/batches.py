"""Reading the batches and blobs of a recording: the part that its reader and its closing writer share."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from stridescope.engine.events import Wire
from stridescope.engine.recording.columns import Batch, DamagedBatch, Schema, decode_kinds, decompress
from stridescope.engine.recording.content import Blob
from stridescope.engine.recording.rough import RoughBatch, is_rough
from stridescope.engine.recording.values import read_value

Key = TypeVar("Key")
Value = TypeVar("Value")

_LARGEST_BLOB = 1 << 40


class Recent(OrderedDict[Key, Value]):
    """The values used last, up to ``limit`` of them."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def use(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of ``key``, made now if it is not there."""
        if key in self:
            self.move_to_end(key)
            return self[key]
        self.keep(key, value := make())
        return value

    def keep(self, key: Key, value: Value) -> None:
        """Add a value as the one used last."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self.limit:
            self.popitem(last=False)


class Batches:
    """The batches of one database, the last few kept decoded."""

    def __init__(self, database: sqlite3.Connection, schema: Schema) -> None:
        self._database, self._schema = database, schema
        self._batches: Recent[int, Batch | RoughBatch] = Recent(16)
        self._wires: Recent[int, list[Wire]] = Recent(6)
        self._values: Recent[bytes, bytes] = Recent(256)
        self._blobs: Recent[bytes, bytes] = Recent(32)  # the chunks that values stand in

    def batch(self, first: int) -> Batch | RoughBatch:
        """Return the batch that begins at step ``first``."""
        return self._batches.use(first, lambda: self._read(first))

    def wires(self, first: int) -> list[Wire]:
        """Return the events of the batch that begins at step ``first``."""
        return self._wires.use(first, lambda: self.batch(first).wires())

    def load(self, key: bytes) -> bytes:
        """Return the bytes kept under ``key``."""
        return self._values.use(key, lambda: read_value(key, self._row))

    def _read(self, first: int) -> Batch | RoughBatch:
        row = self._database.execute("SELECT kinds, body FROM events WHERE first = ?", (first,)).fetchone()
        if row is None:
            raise DamagedBatch(f"the events from step {first} on are missing")
        if is_rough(row[1]):
            return RoughBatch(first, row[0], row[1], self._schema, self._blob)
        return Batch(first, decode_kinds(row[0]), row[1], self._schema, self._blob)

    def _blob(self, key: bytes, nbytes: int) -> Blob:
        return Blob(key, nbytes, self.load)

    def _row(self, key: bytes) -> bytes:
        return self._blobs.use(key, lambda: self._read_row(key))

    def _read_row(self, key: bytes) -> bytes:
        row = self._database.execute("SELECT data FROM blob WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise DamagedBatch("values that an event mentions are missing")
        return decompress(row[0], _LARGEST_BLOB)

    def roughs(self) -> list[int]:
        """Return where the rough batches begin: those of a recording that has not ended."""
        rows = self._database.execute("SELECT first FROM events WHERE substr(body, 1, 1) = x'00'")
        return [first for (first,) in rows]

    def firsts(self, after: int = -1) -> Iterator[tuple[int, int, bytes]]:
        """Yield first step, last step and packed kinds of every batch that begins after a step."""
        rows: Iterator[Any] = self._database.execute(
            "SELECT first, last, kinds FROM events WHERE first > ? ORDER BY first", (after,)
        )
        yield from rows
