"""Reading a recording: its events, and the state of the machine at any step.

A recording may still grow: :meth:`Recording.refresh` takes in what was added. Nothing that stands in a file is ever
executed. A recording belongs to one thread.
"""

from __future__ import annotations

import bisect
import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stridescope.engine.events import (
    Event,
    LineReached,
    NodeBegan,
    OpBegan,
    OutputWritten,
    ScriptEnded,
    StorageWritten,
    VersionBumped,
    Wire,
)
from stridescope.engine.events.grains import GRAINS
from stridescope.engine.recording import keyframes, store
from stridescope.engine.recording.batches import Batches
from stridescope.engine.recording.bundled import Kinds
from stridescope.engine.recording.columns import (
    DamagedBatch,
    Ints,
    Schema,
    decode_kinds,
    decompress,
    unpack_ints,
)
from stridescope.engine.recording.content import Blob
from stridescope.engine.recording.curve import CURVE_CODES, Curve
from stridescope.engine.recording.model import State
from stridescope.engine.recording.seek import Seeker
from stridescope.engine.recording.store import RecordingError

# What a flipped bit can end in: values of another type, texts that are none, indices that point beyond.
_DAMAGE = (sqlite3.DatabaseError, DamagedBatch, ValueError, TypeError, LookupError, OverflowError)
_NO_STEPS: Ints = np.zeros(0, np.int64)


class Source(NamedTuple):
    """A file of the user's script, as it was when it ran."""

    id: int
    path: str
    text: str


class Output(NamedTuple):
    """What the script printed at a step: stream 1 is stdout, 2 is stderr."""

    step: int
    stream: int
    text: str


class Mark(NamedTuple):
    """Something a person put at a step: a chapter, a note, a pen stroke."""

    id: int
    step: int
    kind: str
    body: dict[str, Any]


class Recording:
    """One recording, open to be read. Made by :meth:`open`."""

    def __init__(self, path: str, database: sqlite3.Connection) -> None:
        self.path, self._database = path, database
        self.closed = False
        self.meta = self._read_meta()
        try:
            self._schema = Schema(store.kinds_from(self.meta["kinds"]), bundles=self.meta.get("bundles", ()))
        except (LookupError, TypeError, ValueError) as error:
            raise RecordingError(f"{path} holds events that this Stridescope does not know ({error})") from error
        self._batches = Batches(database, self._schema)
        self._firsts: list[int] = []
        self._found: dict[tuple[type[Event], ...], tuple[int, Ints]] = {}
        self._kinds: Kinds = np.zeros(1 << 12, np.uint8)
        self.steps, self._version = 0, -1
        # Keyframes of another version are left alone: the way is folded from the events.
        readable = self.meta.get("keyframes") == store.described(keyframes.KINDS)
        with self._reading():
            self._seeker = Seeker(self._batches, database if readable else None)
        self._curve = self._read_curve()
        self._outputs: list[Output] = []
        self._outputs_until = 0
        self._sources: dict[int, Source] = {}
        self.refresh()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Recording:
        """Open a recording; raises :class:`RecordingError` with one clear line where it cannot be read."""
        name = os.fspath(path)
        database = store.connect(name)
        try:
            return cls(name, database)
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self.closed = True
        self._database.close()
        if not self.live:
            store.settle(self.path)

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what there is ----

    @property
    def live(self) -> bool:
        """Whether the recording still grows: it was not ended, and its writer runs."""
        process = self.meta.get("process")
        return not self.meta.get("ended") and isinstance(process, int) and store.is_running(process)

    @property
    def sources(self) -> dict[int, Source]:
        """The user's files by their id in the events."""
        return self._sources

    def refresh(self) -> int:
        """Take in what was added since the last call and return the number of steps now known."""
        with self._reading():
            (version,) = self._database.execute("PRAGMA data_version").fetchone()
            if version == self._version:
                return self.steps  # nobody has written since
            self._version, self.meta = version, self._read_meta()
            after = self._firsts[-1] if self._firsts else -1
            for first, last, packed in self._batches.firsts(after):
                self._add_batch(first, last, self._schema.bundles.kinds(decode_kinds(packed)))
            known = max(self._sources, default=-1)
            rows = self._database.execute("SELECT id, path, text FROM source WHERE id > ?", (known,)).fetchall()
            self._sources |= {row[0]: Source(*row) for row in rows}
        return self.steps

    def _add_batch(self, first: int, last: int, kinds: Kinds) -> None:
        if first != self.steps or last - first + 1 != len(kinds) or kinds.max() >= len(self._schema.codes):
            raise DamagedBatch(f"the events from step {self.steps} on do not follow each other")
        while last >= len(self._kinds):
            self._kinds = np.concatenate([self._kinds, np.zeros_like(self._kinds)])
        self._kinds[first : last + 1] = self._schema.translation[kinds]
        self._firsts.append(first)
        self._seeker.add_batch(first, last)
        self.steps = last + 1

    # ---- events ----

    def event(self, step: int) -> Event:
        """Return the event of a step."""
        return self.events(step, step)[0]

    def events(self, first: int, last: int) -> list[Event]:
        """Return the events of the steps ``first`` to ``last``, both included."""
        if not 0 <= first <= last < self.steps:
            raise IndexError(f"steps {first} to {last} of {self.steps}")
        with self._reading():
            return [Event.unpack(_with_bytes(wire)) for wire in self._wires(first, last)]

    def code(self, step: int) -> int:
        """Return the wire code of a step's event, without reading the event."""
        return int(self._kinds[step])

    def _wires(self, first: int, last: int) -> Iterator[Wire]:
        for start in self._firsts[self._batch_at(first) : self._batch_at(last) + 1]:
            wires = self._batches.wires(start)
            yield from wires[max(0, first - start) : last + 1 - start]

    def _batch_at(self, step: int) -> int:
        return bisect.bisect_right(self._firsts, step) - 1

    def steps_of(self, *events: type[Event]) -> Ints:
        """Return the steps of all events of these kinds; the array is read-only and shared."""
        upto, found = self._found.get(events, (0, _NO_STEPS))
        if upto < self.steps:
            wanted = np.zeros(256, bool)
            wanted[[event.code for event in events]] = True
            fresh = np.flatnonzero(wanted[self._kinds[upto : self.steps]]) + upto
            if len(fresh) or not upto:
                found = np.concatenate([found, fresh])
                found.flags.writeable = False
            self._found[events] = self.steps, found
        return found

    def column(self, event: type[Event], name: str) -> Ints:
        """Return an integer field of all events of a kind, in the order of :meth:`steps_of`."""
        with self._reading():
            found = [self._batches.batch(first).ints(event, name) for first in self._firsts_with(event)]
        return np.concatenate([_NO_STEPS, *found])[: len(self.steps_of(event))]

    def _firsts_with(self, event: type[Event]) -> list[int]:
        """Return where the batches begin that hold events of a kind."""
        batches = np.searchsorted(self._firsts, self.steps_of(event), side="right") - 1
        return [self._firsts[at] for at in np.unique(batches).tolist()]

    def lines(self) -> Ints:
        """Return the steps at which a line is about to run."""
        return self.steps_of(LineReached)

    def ops(self) -> Ints:
        """Return the steps at which an op begins."""
        return self.steps_of(OpBegan)

    def backwards(self) -> Ints:
        """Return the steps at which a backward node begins."""
        return self.steps_of(NodeBegan)

    def stops(self, grain: str) -> Ints:
        """Return the steps at which stepping by "line", "op" or "event" comes to rest, and the end."""
        return self.steps_of(*GRAINS[grain], ScriptEnded)

    # ---- states ----

    def state(self, step: int) -> State:
        """Return the machine after the event of ``step``; step -1 is the empty machine before the first.

        The state never changes afterwards. Raises IndexError for a step that is not known.
        """
        if step >= self.steps:
            self.refresh()
        if not -1 <= step < self.steps:
            raise IndexError(f"step {step} of {self.steps}")
        with self._reading():
            return self._seeker.state(step)

    def approach(self, step: int, seconds: float) -> bool:
        """Read on towards a step for about so long; say whether :meth:`state` has it at once now."""
        with self._reading():
            return self._seeker.approach(min(step, self.steps - 1), seconds)

    @property
    def reached(self) -> int:
        """The step at which reading stands, be it one that was only passed."""
        return self._seeker.at

    def history(self, kind: str, id: int) -> list[int]:
        """Return the steps that name a "tensor", "storage", "node", "frame" or "counter".

        The history of a tensor includes its version's: the steps at which it or a view of it is written in place.
        """
        with self._reading():
            steps = self._touching(kind, id)
            if kind == "tensor":
                counters = {self._counter_of(step, id) for step in steps} - {0}
                bumps = [step for counter in counters for step in self._touching("counter", counter)]
                steps = sorted({*steps, *(step for step in bumps if self.code(step) == VersionBumped.code)})
        return steps

    def _counter_of(self, step: int, tensor: int) -> int:
        event = self.event(step)
        return getattr(event, "counter", 0) if getattr(event, "tensor", 0) == tensor else 0

    def _touching(self, entity: str, id: int) -> list[int]:
        rows = self._database.execute(
            "SELECT first, count, ids FROM touch WHERE entity = ? AND low <= ? AND high >= ? ORDER BY first",
            (entity, id, id),
        ).fetchall()
        wanted, found = np.array([id]), []
        for first, count, packed in rows:
            if id in unpack_ints(decompress(packed), count) and first < self.steps:
                found += self._batches.batch(first).touching(entity, wanted).tolist()
        for first in self._batches.roughs():
            found += [
                step for step in self._batches.batch(first).touching(entity, wanted).tolist() if step < self.steps
            ]
        return sorted(found)

    # ---- the whole run at a glance ----

    def output(self, step: int) -> list[Output]:
        """Return what the script had printed up to a step."""
        with self._reading():
            steps = self.steps_of(OutputWritten)
            fresh = steps[np.searchsorted(steps, self._outputs_until) :]
            for number in np.unique(np.searchsorted(self._firsts, fresh, side="right") - 1).tolist():
                first = self._firsts[number]
                wires = self._batches.wires(first)
                self._outputs += [
                    Output(at, *wires[at - first][1:3])
                    for at in fresh[np.searchsorted(fresh, first) : np.searchsorted(fresh, first + len(wires))].tolist()
                ]
        self._outputs_until = self.steps
        return self._outputs[: bisect.bisect_right(self._outputs, step, key=lambda output: output.step)]

    def allocator_curve(self, upto: int | None = None) -> tuple[Ints, Ints, Ints]:
        """Return the steps at which the memory in use changed, and the bytes allocated and reserved after each."""
        self.read_curve(len(self._firsts))
        return self._curve.until(self.steps - 1 if upto is None else upto)

    def curve_so_far(self) -> tuple[Ints, Ints, Ints]:
        """Return the same as far as it was read."""
        return self._curve.until(self.steps - 1)

    def read_curve(self, batches: int) -> bool:
        """Read on in the memory curve, at most so many batches; returns whether all of it is read."""
        curve = self._curve
        with self._reading():
            while batches > 0 and curve.read_until < self.steps:
                at = self._batch_at(curve.read_until)
                end = self._firsts[at + 1] if at + 1 < len(self._firsts) else self.steps
                if (CURVE_CODES[self._kinds[self._firsts[at] : end]]).any():
                    curve.add(self._batches, self._firsts[at])
                    batches -= 1
                curve.read_until = end
        return curve.read_until >= self.steps

    # ---- what people add ----

    def marks(self) -> list[Mark]:
        """Return all marks in the order of their steps."""
        with self._reading():
            rows = self._database.execute("SELECT id, step, kind, body FROM mark ORDER BY step, id").fetchall()
            return [Mark(id, step, kind, json.loads(body)) for id, step, kind, body in rows]

    def add_mark(self, step: int, kind: str, body: dict[str, Any]) -> int:
        """Put a mark at a step and return its id."""
        return self._change("INSERT INTO mark (step, kind, body) VALUES (?, ?, ?)", step, kind, json.dumps(body))

    def remove_mark(self, id: int) -> None:
        """Take a mark away."""
        self._change("DELETE FROM mark WHERE id = ?", id)

    def layout(self, name: str) -> Any:
        """Return a layout kept with the recording, or None."""
        with self._reading():
            row = self._database.execute("SELECT body FROM layout WHERE name = ?", (name,)).fetchone()
            return None if row is None else json.loads(row[0])

    def keep_layout(self, name: str, layout: Any) -> None:
        """Keep a layout with the recording; it is plain JSON."""
        self._change("INSERT OR REPLACE INTO layout VALUES (?, ?)", name, json.dumps(layout))

    def _change(self, sql: str, *values: Any) -> int:
        """Reading opens the file read-only, so a change goes through a connection of its own."""
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=5)) as database, database:
                return database.execute(sql, values).lastrowid or 0
        except sqlite3.Error as error:
            raise RecordingError(f"{self.path} cannot be changed: {error}") from error

    # ---- inside ----

    def _read_meta(self) -> dict[str, Any]:
        with self._reading():
            return {name: json.loads(value) for name, value in self._database.execute("SELECT name, value FROM meta")}

    def _read_curve(self) -> Curve:
        """The memory curve that was kept when the recording ended; older recordings have none."""
        curve = Curve()
        with self._reading():
            if self._database.execute("SELECT 1 FROM sqlite_master WHERE name = 'curve'").fetchone():
                for until, packed in self._database.execute("SELECT until, points FROM curve LIMIT 1"):
                    curve.unpack(until, packed)
        return curve

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGE as error:
            raise RecordingError(f"{self.path} is damaged: {error}") from error


def _with_bytes(wire: Wire) -> Wire:
    if wire[0] == StorageWritten.code and isinstance(wire[-1], Blob):
        return (*wire[:-1], wire[-1].read())
    return wire
