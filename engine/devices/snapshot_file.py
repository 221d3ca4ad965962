"""Reading and writing memory snapshots as files: pickles that hold plain containers and nothing else."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import io
import os
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

PICKLE_PROTOCOL = 4

Entry = dict[str, Any]

# What the fields that the replay reads must be. Old files lack some of the others: they are read with defaults.
SEGMENT_FIELDS: dict[str, type] = {
    "address": int,
    "total_size": int,
    "stream": int,
    "segment_type": str,
    "blocks": list,
}
BLOCK_FIELDS: dict[str, type] = {"size": int, "state": str}
ENTRY_FIELDS: dict[str, type] = {"action": str, "size": int, "stream": int}
PLACED_FIELDS: dict[str, type] = {**ENTRY_FIELDS, "addr": int}
# Actions that happen at no address.
UNPLACED = ("oom", "snapshot")
# What may be missing, but must be numbers where it is there.
OPTIONAL = ("device", "requested_size")
# More than any GPU has: the sum of a snapshot's segments.
LARGEST_MEMORY = 1 << 42

# Everything that a broken or hostile pickle can raise while it is read.
_UNREADABLE = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    OverflowError,
    MemoryError,
    RecursionError,
    ImportError,
)


class SnapshotError(ValueError):
    """A file that is no memory snapshot; the text is one line."""


class PlainUnpickler(pickle.Unpickler):
    """Builds dicts, lists, tuples, numbers, strings and bytes; whatever needs a class or function is refused unrun."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse: a snapshot needs no class, and a class could run code."""
        raise SnapshotError(f"it wants to run {module}.{name}, which a memory snapshot never does")

    def persistent_load(self, pid: Any) -> NoReturn:
        """Refuse references to things outside the file."""
        raise SnapshotError("it refers to objects outside the file, which a memory snapshot never does")


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A checked snapshot: segments and traces in PyTorch's form, and the text of the options that were in force."""

    segments: list[dict[str, Any]]
    device_traces: list[list[Entry]]
    conf: str

    def segments_of(self, device: int) -> list[dict[str, Any]]:
        """The segments of one device."""
        return [segment for segment in self.segments if segment.get("device", 0) == device]

    def devices(self) -> list[int]:
        """The devices that have segments or a trace."""
        traced = {device for device, trace in enumerate(self.device_traces) if trace}
        return sorted(traced | {segment.get("device", 0) for segment in self.segments})


Progress = Callable[[str, int, int], None]
"""Told what is being done, how far it is and where it ends."""

TELL_SECONDS = 0.25


def load_snapshot(path: str | os.PathLike[str], progress: Progress | None = None) -> Snapshot:
    """Read and check a snapshot file; raises SnapshotError with one clear line, or OSError."""
    with Path(path).open("rb") as file, _told(file, progress), _nothing_collected():
        return checked_snapshot(read_plain_pickle(file))


@contextlib.contextmanager
def _told(file: BinaryIO, progress: Progress | None) -> Iterator[None]:
    """While it is open, a thread tells how much of the file was read."""
    if progress is None:
        yield
        return
    size, done = os.fstat(file.fileno()).st_size, threading.Event()

    def tell() -> None:
        while not done.wait(TELL_SECONDS):
            progress("bytes", os.lseek(file.fileno(), 0, os.SEEK_CUR), size)

    teller = threading.Thread(target=tell, name="stridescope-progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """Millions of containers are made, all of them kept: to look through them for garbage would take most of the time.

    What was made is left out of later collections too.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if enabled:
            gc.enable()


def read_plain_pickle(file: BinaryIO) -> Any:
    """Unpickle plain containers; raises SnapshotError for everything else."""
    try:
        # Python itself prints a remark when the bytes of a cut bytearray are let go.
        with contextlib.redirect_stderr(io.StringIO()):
            return PlainUnpickler(file).load()
    except SnapshotError:
        raise
    except _UNREADABLE as error:
        raise SnapshotError(f"it is cut short or no pickle ({error or type(error).__name__})") from None


def checked_snapshot(found: Any) -> Snapshot:
    """A snapshot from plain data; a bare list of segments is one too. Raises SnapshotError."""
    if isinstance(found, list):
        found = {"segments": found}
    if not isinstance(found, dict) or not isinstance(found.get("segments"), list):
        raise SnapshotError("it has no list of segments")
    traces = found.get("device_traces") or []
    if not isinstance(traces, list) or not all(isinstance(trace, list) for trace in traces):
        raise SnapshotError("its device_traces are not lists")
    _check("segment", found["segments"], SEGMENT_FIELDS)
    for segment in found["segments"]:
        _check_tiling(segment)
    if sum(segment["total_size"] for segment in found["segments"]) > LARGEST_MEMORY:
        raise SnapshotError("its segments are larger than the memory of any GPU")
    for trace in traces:
        _check("trace entry", trace, ENTRY_FIELDS)
        _check("trace entry", (entry for entry in trace if entry["action"] not in UNPLACED), PLACED_FIELDS)
    settings = found.get("allocator_settings")
    conf = settings.get("PYTORCH_CUDA_ALLOC_CONF", "") if isinstance(settings, dict) else ""
    return Snapshot(found["segments"], traces, conf if isinstance(conf, str) else "")


def _check(what: str, items: Iterable[Any], fields: dict[str, type]) -> None:
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise SnapshotError(f"{what} {number} is no dict")
        for name, kind in fields.items():
            if not isinstance(item.get(name), kind):
                raise SnapshotError(f"{what} {number} has no {name} that is {kind.__name__}")
            if kind is int and item[name] < 0:
                raise SnapshotError(f"{what} {number} has a negative {name}")
        for name in OPTIONAL:
            if not isinstance(found := item.get(name, 0), int) or found < 0:
                raise SnapshotError(f"{what} {number} has a {name} that is no number")


def _check_tiling(segment: dict[str, Any]) -> None:
    _check("block", segment["blocks"], BLOCK_FIELDS)
    total = sum(block["size"] for block in segment["blocks"])
    if total != segment["total_size"]:
        raise SnapshotError(
            f"the blocks of the segment at {segment['address']:#x} add up to {total} bytes, "
            f"not to its {segment['total_size']}"
        )


def dump_snapshot(snapshot: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a snapshot for PyTorch's own viewers."""
    with Path(path).open("wb") as file:
        pickle.dump(snapshot, file, protocol=PICKLE_PROTOCOL)
