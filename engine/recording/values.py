"""Values that a recording keeps apart from its events: each once, many of them in one chunk.

A chunk is compressed as a whole and is one row of the table ``blob``. A training step leaves some dozen values of a
few kilobytes: on its own each would cost zstd and SQLite half as much again, take a fifth more room and have the
recording's thread hand Python over to the script's and wait to get it back. The key of a value says where it is. Up to
format 3 each value was a row of its own under the hash of its contents.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import xxhash
import zstandard

from stridescope.engine.events.bundles import INLINE

CHUNK = 1 << 18  # bytes: whoever reads a value decompresses its chunk, a tenth of a millisecond
_ROWS_AT_ONCE = 100
_KEY, _NUMBER = struct.Struct(">QIQ"), struct.Struct(">Q")  # chunk, first byte, length; a chunk's own key


class Blobs:
    """Bytes kept once each, until :meth:`write` stores them."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}  # the keys, by the hash of the contents
        self._chunks: list[bytes] = []  # that are full and not stored
        self._values: list[bytes] = []  # of the chunk that is being filled
        self._length, self._number = 0, 0
        # A fast level: values of floats hardly become smaller, whatever the effort.
        self._compressor = zstandard.ZstdCompressor(level=-5)

    def put(self, values: bytes) -> bytes:
        """Keep ``values`` and return their key."""
        contents = xxhash.xxh3_128_digest(values)
        if (key := self._known.get(contents)) is None:
            key = self._known[contents] = _KEY.pack(self._number, self._length, len(values))
            self._values.append(values)
            self._length += len(values)
            if self._length >= CHUNK:
                self._close()
        return key

    def keep(self, values: bytes) -> bytes | None:
        """Keep ``values`` unless they are short enough to stand in the event."""
        return self.put(values) if len(values) > INLINE else None

    def write(self, database: sqlite3.Connection) -> None:
        """Store what is new."""
        if self._values:
            self._close()
        if self._chunks:
            first = self._number - len(self._chunks)
            packed = compress_all(self._compressor, self._chunks)
            insert(database, "blob", [(_NUMBER.pack(first + at), chunk) for at, chunk in enumerate(packed)])
            self._chunks.clear()

    def _close(self) -> None:
        self._chunks.append(b"".join(self._values))
        self._values.clear()
        self._length, self._number = 0, self._number + 1


def read_value(key: bytes, row: Callable[[bytes], bytes]) -> bytes:
    """Return the bytes of a key; ``row`` reads what is kept under the key of a row, decompressed."""
    if len(key) != _KEY.size:
        return row(key)
    number, first, length = _KEY.unpack(key)
    return row(_NUMBER.pack(number))[first : first + length]


def compress_all(compressor: zstandard.ZstdCompressor, pieces: Sequence[bytes]) -> list[Any]:
    """Compress each of these bytes, of which none is empty, in one call: Python is handed over once.

    What is returned are bytes or buffers of them.
    """
    if "multi_compress_to_buffer" not in zstandard.backend_features:
        return [compressor.compress(piece) for piece in pieces]
    packed = compressor.multi_compress_to_buffer(list(pieces))
    return [packed[at] for at in range(len(packed))]


def insert(database: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]]) -> None:
    """Add rows to a table, many with one statement: ``executemany`` hands Python over for each."""
    left = list(rows)
    while left:
        some, left = left[:_ROWS_AT_ONCE], left[_ROWS_AT_ONCE:]
        marks = ", ".join([f"({', '.join('?' * len(some[0]))})"] * len(some))
        database.execute(f"INSERT INTO {table} VALUES {marks}", [value for row in some for value in row])
