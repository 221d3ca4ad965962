"""The writer: takes the engine's events and keeps them, while the script runs on.

The engine appends wire tuples to a plain list. A thread empties it at least every 50 ms, packs what it found in
batches and commits them, so a killed process loses no more than that. When the recording is closed the batches become
columns and the keyframes are added.
"""

from __future__ import annotations

import contextlib
import operator
import os
import sqlite3
import threading
import time
import tokenize
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import zstandard

from stridescope.engine.events import Journal, SourceSeen, Wire
from stridescope.engine.recording import keyframes, store
from stridescope.engine.recording.batches import Batches
from stridescope.engine.recording.bundled import described_bundles
from stridescope.engine.recording.columns import Encoded, Schema, kinds_now, pack_ints
from stridescope.engine.recording.curve import Curve
from stridescope.engine.recording.machine import Machine
from stridescope.engine.recording.rough import RoughBatch, pack_rough, rough_body
from stridescope.engine.recording.store import RecordingError
from stridescope.engine.recording.values import Blobs, compress_all, insert

FLUSH_SECONDS = 0.05
BATCH = 512  # events that stand together, or a few more: whoever goes to a step reads all of them
_code_of = operator.itemgetter(0)


class Writer:
    """Writes one recording.

    ``failure`` says why the recording stopped early, if it did: a full disk costs the recording, never the script.
    """

    def __init__(self, path: str | os.PathLike[str], meta: Mapping[str, Any]) -> None:
        """Create the file; raises :class:`RecordingError` where that is impossible."""
        facts = {"created": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "process": os.getpid(), **meta}
        self.path, self.failure = os.fspath(path), ""
        self._database = store.create(path, facts)
        self._buffer: list[Wire] = []
        self._journal: Journal | None = None
        self._steps, self._blobs, self._schema = 0, Blobs(), Schema(kinds_now(), bundles=described_bundles())
        self._compressor = zstandard.ZstdCompressor(level=-3)  # rough batches do not stay: fast, not small
        self._columns: list[tuple[int, int, bytes, bytes]] = []  # rows that take the place of rough batches
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._flush_often, name="stridescope-recording", daemon=True)
        self._thread.start()

    def attach(self, journal: Journal, keep_values: int = -1) -> None:
        """Record everything that the engine says from now on; ``keep_values`` is the journal's."""
        self._journal = journal
        journal.start(self._buffer.append, keep_values, bundles=True)
        _WRITERS.add(self)

    def detach(self) -> None:
        """Record nothing more."""
        if self._journal is not None:
            self._journal.stop()
            self._journal = None

    @property
    def steps(self) -> int:
        """How many events there are, flushed or not. Exact when asked by the thread that emits."""
        return self._steps + int(self._schema.bundles.counts[[row[0] for row in self._buffer]].sum())

    def add_source(self, source: int, path: str, text: str) -> None:
        """Keep the text of a source that is not a file that can be read, such as code given on the command line."""
        with self._lock:
            self._database.execute("INSERT OR REPLACE INTO source VALUES (?, ?, ?)", (source, path, text))

    def flush(self) -> int:
        """Make everything emitted so far readable by others, and return the number of steps."""
        with self._lock:
            self._drain()
        return self._steps

    def close(self, status: int | None = None) -> None:
        """End the recording: ``status`` is the script's exit status, None where it is not known."""
        self.detach()
        self._stop.set()
        self._thread.join()
        self.flush()
        self._guard(self._end, {"ended": True, "status": status, "failure": self.failure or None})
        if not self.failure:
            self._guard(self._tidy_up, None)
        store.finish(self._database)

    # ---- inside ----

    def _flush_often(self) -> None:
        while not self._stop.wait(FLUSH_SECONDS):
            if self._buffer:
                self.flush()

    def _drain(self) -> None:
        while self._buffer and not self.failure:
            # One copy and one delete: the engine may append between them, at the end.
            taken = self._buffer[:]
            del self._buffer[: len(taken)]
            self._guard(self._write, taken)
        if self.failure:
            self._buffer.clear()

    def _guard(self, action: Any, argument: Any) -> None:
        """Do something to the file; where that fails, for whatever reason, stop recording and remember why."""
        steps = self._steps
        try:
            self._database.execute("BEGIN")
            action(argument)
            self._database.execute("COMMIT")
        except Exception as error:
            self._steps = steps
            self.failure = self.failure or f"the recording {self.path} stopped at step {steps}: {error}"
            self.detach()
            with contextlib.suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")

    def _write(self, rows: list[Wire]) -> None:
        codes = bytes(map(_code_of, rows))
        ends = self._schema.bundles.counts[np.frombuffer(codes, np.uint8)].cumsum()  # the steps up to each row's end
        cuts = np.searchsorted(ends, np.arange(BATCH, int(ends[-1]), BATCH)) + 1
        start, before, steps, pieces = 0, 0, [], list[bytes]()
        for stop in dict.fromkeys([*cuts.tolist(), len(rows)]):
            pieces += pack_rough(rows[start:stop], codes[start:stop], self._blobs.keep, self._schema)
            start, count, before = stop, int(ends[stop - 1]) - before, int(ends[stop - 1])
            steps.append((self._steps, self._steps + count - 1))
            self._steps += count
        packed = iter(compress_all(self._compressor, pieces))
        insert(self._database, "events", [(*span, next(packed), rough_body(next(packed))) for span in steps])
        self._blobs.write(self._database)
        if SourceSeen.code in codes:
            for row in rows:
                if row[0] == SourceSeen.code:
                    self._write_source(*row[1:])

    def _write_columns(self, first: int, last: int, batch: Encoded) -> None:
        """Have columns take the place of a rough batch, and note what it touches."""
        self._columns.append((first, last, batch.kinds, batch.body))
        compress = zstandard.ZstdCompressor(level=3).compress
        self._database.executemany(
            "INSERT INTO touch VALUES (?, ?, ?, ?, ?, ?)",
            [
                (entity, first, int(ids[0]), int(ids[-1]), len(ids), compress(pack_ints(ids)))
                for entity, ids in batch.touched.items()
                if len(ids)
            ],
        )

    def _write_source(self, source: int, path: str) -> None:
        try:
            with tokenize.open(path) as file:
                text = file.read()
        except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
            return
        self._database.execute("INSERT OR IGNORE INTO source VALUES (?, ?, ?)", (source, path, text))

    def _end(self, facts: dict[str, Any]) -> None:
        store.set_meta(self._database, facts)

    def _tidy_up(self, _: None) -> None:
        """Make columns of the batches, and add the keyframes."""
        store.set_meta(self._database, {"keyframes": store.described(keyframes.KINDS)})
        machine, curve = Machine(), Curve()
        for _ in keyframes.walk(machine, self._tidied(curve)):
            keyframes.store(self._database, machine, self._blobs.put)
            self._blobs.write(self._database)
        self._database.execute("INSERT OR REPLACE INTO curve VALUES (?, ?)", curve.packed())
        # Rows that shrink where they stand leave their pages half empty.
        self._database.executemany("DELETE FROM events WHERE first = ?", [row[:1] for row in self._columns])
        self._database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", self._columns)
        self._columns.clear()

    def _tidied(self, curve: Curve) -> Iterator[Wire]:
        """Yield all events; batches become columns on the way, and the memory curve takes them in."""
        batches = Batches(self._database, self._schema)
        for first, last, _ in list(batches.firsts()):
            batch = batches.batch(first)
            if isinstance(batch, RoughBatch) and (columns := batch.as_columns()) is not None:
                self._write_columns(first, last, columns)
            curve.add(batches, first)
            yield from batch.wires()


_WRITERS: weakref.WeakSet[Writer] = weakref.WeakSet()


def _abandon() -> None:
    """In a child made by fork: the recording belongs to the parent."""
    for writer in _WRITERS:
        writer.detach()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon)

__all__ = ["RecordingError", "Writer"]
