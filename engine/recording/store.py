"""The file itself: the tables of a recording, how one is made and how one is opened.

A recording is an SQLite database. While it is written it is in WAL mode, so that others can read it and a killed
writer leaves everything up to its last flush; when it is closed it is a single file again.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import sqlite3
from collections.abc import Mapping
from typing import Any

from stridescope.engine.recording.bundled import described_bundles
from stridescope.engine.recording.columns import Field, Kind, kinds_now

FORMAT = 4  # rough batches hold, from 2 on, bundles, from 3 on those of whole calls and of numbers; 4: values in chunks
_APPLICATION = 0x53545244  # "STRD"
_MAGIC = b"SQLite format 3\0"

# Pages that the log takes before they are written a second time, into the database itself: 40 MB.
_CHECKPOINT_PAGES = 10_000

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE source (id INTEGER PRIMARY KEY, path TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE events (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, kinds BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE keyframe (step INTEGER PRIMARY KEY, state BLOB NOT NULL);
CREATE TABLE touch (
  entity TEXT NOT NULL, first INTEGER NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL,
  count INTEGER NOT NULL, ids BLOB NOT NULL, PRIMARY KEY (entity, first)
) WITHOUT ROWID;
CREATE TABLE blob (key BLOB PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE mark (id INTEGER PRIMARY KEY, step INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE curve (until INTEGER PRIMARY KEY, points BLOB NOT NULL);
CREATE TABLE layout (name TEXT PRIMARY KEY, body TEXT NOT NULL);
"""


class RecordingError(Exception):
    """A recording that cannot be read or written; the text is one line for the user."""

    def __init__(self, text: str) -> None:
        super().__init__(" ".join(text.splitlines()))  # SQLite quotes what it cannot read, lines and all


def create(path: str | os.PathLike[str], meta: Mapping[str, Any]) -> sqlite3.Connection:
    """Make an empty recording, in place of an older one if need be, and return it ready to be written."""
    target = pathlib.Path(path)
    _make_room(target)
    try:
        database = sqlite3.connect(target, check_same_thread=False, isolation_level=None)
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # what the rough batches took is given back at the end
        database.executescript(f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT}; {TABLES}")
        set_meta(database, {"format": FORMAT, "kinds": described(kinds_now()), "bundles": described_bundles(), **meta})
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    except sqlite3.Error as error:
        raise RecordingError(f"{target} cannot be written: {error}") from error
    return database


def _make_room(target: pathlib.Path) -> None:
    if target.is_dir():
        raise RecordingError(f"{target} is a folder: give the name of a file for the recording")
    if not target.parent.is_dir():
        raise RecordingError(f"{target} cannot be written: there is no folder {target.parent}")
    try:
        if target.exists() and target.stat().st_size and not _is_recording(_header(target)):
            raise RecordingError(f"{target} exists and is not a recording: give another name")
        for name in (target, *companions(target)):
            name.unlink(missing_ok=True)
    except OSError as error:
        raise RecordingError(f"{target} cannot be written: {error.strerror}") from error


def companions(path: pathlib.Path) -> list[pathlib.Path]:
    """Return the names of the files that SQLite keeps beside a database while it is open."""
    return [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal")]


def set_meta(database: sqlite3.Connection, values: Mapping[str, Any]) -> None:
    """Write facts about the recording; the values are plain JSON."""
    rows = [(name, json.dumps(value)) for name, value in values.items()]
    database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def finish(database: sqlite3.Connection) -> None:
    """Make a recording a single file and close it. Where someone reads it, they tidy up when they close it."""
    with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(database):
        database.execute("PRAGMA incremental_vacuum").fetchall()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode = DELETE")


def settle(path: str | os.PathLike[str]) -> None:
    """Make a recording that nobody writes any more a single file, if that was not done and can be."""
    if companions(pathlib.Path(path))[0].exists():
        with contextlib.suppress(sqlite3.Error):
            finish(sqlite3.connect(path, timeout=0.2, isolation_level=None))


def connect(path: str | os.PathLike[str]) -> sqlite3.Connection:
    """Open a recording to read it; raises :class:`RecordingError` with one clear line."""
    target = pathlib.Path(path)
    check(target)
    uri = target.resolve().as_uri()
    # A recording on a read-only medium cannot have its -shm file made: read it as it stands.
    for mode in ("mode=ro", "immutable=1"):
        try:
            database = sqlite3.connect(f"{uri}?{mode}", uri=True, check_same_thread=False, isolation_level=None)
            database.execute("SELECT count(*) FROM meta").fetchone()
            return database
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            fault: Exception = error
    raise RecordingError(f"{target} is damaged: {fault}")


def check(target: pathlib.Path) -> None:
    """Raise :class:`RecordingError` unless the file begins as a recording that this version can read."""
    if target.is_dir():
        raise RecordingError(f"{target} is a folder, not a recording")
    if not target.exists():
        raise RecordingError(f"there is no file {target}")
    try:
        header = _header(target)
        size = target.stat().st_size
    except OSError as error:
        raise RecordingError(f"{target} cannot be read: {error.strerror}") from error
    if not size:
        raise RecordingError(f"{target} is empty")
    if not _is_recording(header):
        raise RecordingError(f"{target} is not a Stridescope recording")
    version = int.from_bytes(header[60:64], "big")
    if version > FORMAT:
        raise RecordingError(f"{target} was made by a newer Stridescope (format {version}, this one reads {FORMAT})")
    whole = _page_size(header) * int.from_bytes(header[28:32], "big")
    if size < whole:
        raise RecordingError(f"{target} is cut short: {size} of {whole} bytes are there")


def _header(target: pathlib.Path) -> bytes:
    with target.open("rb") as file:
        return file.read(100)


def _page_size(header: bytes) -> int:
    size = int.from_bytes(header[16:18], "big")
    return 65536 if size == 1 else size


def _is_recording(header: bytes) -> bool:
    return len(header) == 100 and header.startswith(_MAGIC) and int.from_bytes(header[68:72], "big") == _APPLICATION


# ---- the kinds of events, as meta keeps them ---------------------------------------------------------------------


def described(kinds: tuple[Kind, ...]) -> list[Any]:
    """Return kinds as plain JSON."""
    return [[kind.name, [[field.name, field.form] for field in kind.fields]] for kind in kinds]


def kinds_from(described: list[Any]) -> list[Kind]:
    """Undo the description that ``create`` writes into ``meta``."""
    return [Kind(name, tuple(Field(*field) for field in fields)) for name, fields in described]


# ---- whether the writer lives ------------------------------------------------------------------------------------


def is_running(process: int) -> bool:
    """Whether a process of this machine is alive."""
    if process <= 0:
        return False
    if os.name == "nt":
        return _is_running_on_windows(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_running_on_windows(process: int) -> bool:
    import ctypes

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    handle = kernel.OpenProcess(0x1000, False, process)  # PROCESS_QUERY_LIMITED_INFORMATION
    if not handle:
        return False
    code = ctypes.c_ulong()
    kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return code.value == 259  # STILL_ACTIVE
