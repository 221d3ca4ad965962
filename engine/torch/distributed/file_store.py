"""``FileStore``: a store in a file, which is a list of changes that every process reads on from where it was."""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import IO

from stridescope.engine.torch.distributed.store import Store, added, as_amount, as_bytes, as_key, deadline

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


LOOK_AGAIN = 0.01  # seconds between two looks into the file
_ENTRY = struct.Struct("<II?")  # lengths of key and value, and whether the key is gone
_USERS = "refcount/"  # how many handles are open; the last one takes the file away


class FileStore(Store):
    """A store in a file that all processes can reach; the last of them to let go removes it."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path, self._world_size = os.fspath(file_name), world_size
        self._values: dict[str, bytes] = {}
        self._read = 0
        self._users = self.add(_USERS, 1)

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        """The file, locked, with everything in it read."""
        with open(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
            _lock(file)
            try:
                self._catch_up(file)
                yield file
                file.flush()
            finally:
                _unlock(file)

    def _catch_up(self, file: IO[bytes]) -> None:
        file.seek(self._read)
        while len(head := file.read(_ENTRY.size)) == _ENTRY.size:
            key_size, value_size, gone = _ENTRY.unpack(head)
            key, value = file.read(key_size).decode(), file.read(value_size)
            if gone:
                self._values.pop(key, None)
            else:
                self._values[key] = value
        self._read = file.tell()

    def _write(self, file: IO[bytes], key: str, value: bytes, gone: bool = False) -> None:
        name = key.encode()
        file.seek(0, os.SEEK_END)
        file.write(_ENTRY.pack(len(name), len(value), gone) + name + value)
        file.flush()
        self._catch_up(file)

    def _change(self, key: str, change: Callable[[bytes | None], bytes]) -> bytes:
        with self._open() as file:
            self._write(file, key, result := change(self._values.get(key)))
        return result

    def set(self, key: str, value: str | bytes) -> None:
        """Store a value."""
        self._change(as_key(key), lambda old: as_bytes(value))

    def add(self, key: str, amount: int) -> int:
        """Add to a counter and return it; raises ValueError when the value there is no number."""
        number = as_amount(amount)
        return int(self._change(as_key(key), lambda old: added(old, number)))

    def append(self, key: str, value: str | bytes) -> None:
        """Lengthen a value."""
        self._change(as_key(key), lambda old: (old or b"") + as_bytes(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set the key where it has the expected value (or none, when that is empty); return what it has then."""
        expected, desired = as_bytes(expected_value), as_bytes(desired_value)
        with self._open() as file:
            old = self._values.get(as_key(key))
            if old is None and expected:
                return expected
            if old is None or old == expected:
                self._write(file, key, desired)
            return self._values[key]

    def get(self, key: str) -> bytes:
        """The value of a key; raises RuntimeError when it does not come in time."""
        milliseconds = round(self.timeout.total_seconds() * 1000)
        self._until([as_key(key)], self.timeout, f"Timeout waiting for key: {key} after {milliseconds} ms")
        return self._values[key]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there; raises RuntimeError when they do not come in time."""
        self._until(keys, self.timeout if timeout is None else timeout, "Wait timeout")

    def _until(self, keys: Sequence[str], timeout: timedelta, refusal: str) -> None:
        end = deadline(timeout)
        while not self.check(keys):
            if time.monotonic() > end:
                raise RuntimeError(refusal)
            time.sleep(LOOK_AGAIN)  # nothing tells one process that another has written

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        with self._open():
            return all(key in self._values for key in keys)

    def delete_key(self, key: str) -> bool:
        """Remove a key; True, as PyTorch's says whether it was there or not."""
        with self._open() as file:
            self._write(file, as_key(key), b"", gone=True)
        return True

    def num_keys(self) -> int:
        """How many keys there are, with the store's own."""
        with self._open():
            return len(self._values)

    def list_keys(self) -> list[str]:
        """All keys of the user's."""
        with self._open():
            return [key for key in self._values if key != _USERS]

    def clone(self) -> FileStore:
        """Another handle on the same file."""
        return FileStore(self._path, self._world_size)

    def __del__(self) -> None:
        if hasattr(self, "_users"):
            with suppress(OSError, ValueError):
                if os.path.exists(self._path) and self.add(_USERS, -1) == 0:
                    os.remove(self._path)


FileStore.__module__ = "torch._C._distributed_c10d"
