"""The lines between the ranks of a job on one machine: a socket for each pair, a thread that reads each.

A message has a key that says what it is for, a note that says what was sent, and bytes. Whoever needs a message waits
for its key, so that messages may be taken in another order than they came. Every line is always read: a process that
sends never waits for the other to listen. A line that breaks wakes all who wait for it.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

from stridescope.engine.torch.distributed.errors import DistNetworkError
from stridescope.engine.torch.distributed.store import Store, deadline
from stridescope.engine.torch.distributed.tcp_store import read_exactly

_HEAD = struct.Struct("!HHQ")  # lengths of key, note and payload
_RANK = struct.Struct("!I")
HOST = "127.0.0.1"


class Message(NamedTuple):
    """What one rank sent another: words on what it is, and the bytes."""

    note: str
    payload: bytes


class _Inbox:
    """What has come and was not taken yet, by (rank, key); and which ranks are gone, and why."""

    def __init__(self) -> None:
        self.messages: dict[tuple[int, str], deque[Message]] = {}
        self.gone: dict[int, str] = {}
        self.changed = threading.Condition()

    def put(self, rank: int, key: str, message: Message) -> None:
        with self.changed:
            self.messages.setdefault((rank, key), deque()).append(message)
            self.changed.notify_all()

    def take(self, rank: int, key: str) -> Message:
        waiting = self.messages[rank, key]
        message = waiting.popleft()
        if not waiting:
            del self.messages[rank, key]
        return message

    def lose(self, rank: int, why: str) -> None:
        with self.changed:
            self.gone.setdefault(rank, why)
            self.changed.notify_all()


class Mesh:
    """This rank's lines to all others.

    Raises DistNetworkError when the others do not come in time.
    """

    def __init__(self, rank: int, size: int, store: Store, timeout: timedelta) -> None:
        self.rank, self.size = rank, size
        self._inbox = _Inbox()
        self._lines: dict[int, socket.socket] = {}
        self._locks = {other: threading.Lock() for other in range(size)}
        if size > 1:
            self._connect(store, timeout)
        for other, line in self._lines.items():
            line.settimeout(None)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            arguments = (line, other, self._inbox)
            threading.Thread(target=_read, args=arguments, name=f"stridescope-rank-{other}", daemon=True).start()
        weakref.finalize(self, _hang_up, self._lines).atexit = False
        _open.add(self)

    def _connect(self, store: Store, timeout: timedelta) -> None:
        """Meet the others: each is called by those of higher rank."""
        end = deadline(timeout)
        with socket.create_server((HOST, 0), backlog=self.size) as listener:
            store.set(str(self.rank), str(listener.getsockname()[1]))
            for other in range(self.rank):
                store.wait([str(other)], timeout)
                line = socket.create_connection((HOST, int(store.get(str(other)))), _left(end))
                line.sendall(_RANK.pack(self.rank))
                self._lines[other] = line
            while len(self._lines) < self.size - 1:
                self._answer(listener, end, timeout)

    def _answer(self, listener: socket.socket, end: float, timeout: timedelta) -> None:
        try:
            listener.settimeout(_left(end))
            line, _ = listener.accept()
            line.settimeout(_left(end))
            self._lines[_RANK.unpack(read_exactly(line, _RANK.size))[0]] = line
        except TimeoutError:
            missing = [str(other) for other in range(self.size) if other not in (self.rank, *self._lines)]
            raise DistNetworkError(
                f"Gloo connectFullMesh failed with timed out after {_milliseconds(timeout)}ms waiting for ranks "
                f"{', '.join(missing)} to connect"
            ) from None

    def send(self, rank: int, key: str, message: Message) -> None:
        """Send a message; raises RuntimeError when the rank is gone."""
        if rank == self.rank:
            return self._inbox.put(rank, key, message)
        name, note = key.encode(), message.note.encode()
        try:
            with self._locks[rank]:
                line = self._lines[rank]
                line.sendall(_HEAD.pack(len(name), len(note), len(message.payload)) + name + note)
                if message.payload:  # once it has all, the other may hang up
                    line.sendall(message.payload)
        except OSError as error:
            self._inbox.lose(rank, os.strerror(error.errno or 0))
            raise self._loss(rank) from None

    def has(self, rank: int, key: str) -> bool:
        """Whether a message can be taken without waiting, or will never come."""
        return (rank, key) in self._inbox.messages or rank in self._inbox.gone

    def receive(self, rank: int, key: str, timeout: timedelta) -> Message:
        """Wait for a message and take it; raises RuntimeError when the rank is gone or the time is over."""
        self._wait(lambda: self.has(rank, key), timeout)
        return self._take(rank, key)

    def receive_any(self, keys: Callable[[int], str], ranks: Sequence[int], timeout: timedelta) -> tuple[int, Message]:
        """Wait for the message with the key that ``keys`` gives for its rank, from whichever of the ranks it comes."""
        found: list[int] = []

        def there() -> bool:
            found[:] = [rank for rank in ranks if (rank, keys(rank)) in self._inbox.messages]
            return bool(found) or all(rank in self._inbox.gone for rank in ranks)

        self._wait(there, timeout)
        rank = found[0] if found else ranks[0]
        return rank, self._take(rank, keys(rank))

    def _take(self, rank: int, key: str) -> Message:
        with self._inbox.changed:
            if (rank, key) in self._inbox.messages:
                return self._inbox.take(rank, key)
        raise self._loss(rank)

    def _wait(self, there: Callable[[], bool], timeout: timedelta) -> None:
        with self._inbox.changed:
            if not self._inbox.changed.wait_for(there, timeout.total_seconds()):
                raise RuntimeError(f"Timed out waiting {_milliseconds(timeout)}ms for recv operation to complete")

    def _loss(self, rank: int) -> RuntimeError:
        return RuntimeError(f"{self._inbox.gone[rank]}: rank {rank} has ended or left the process group")

    def close(self) -> None:
        """Hang up; what was sent before still arrives."""
        for rank in self._lines:
            self._inbox.lose(rank, "Connection closed by this process")
        _hang_up(self._lines)


_open: weakref.WeakSet[Mesh] = weakref.WeakSet()


def _left(end: float) -> float:
    return max(end - time.monotonic(), 0.001)


def _milliseconds(timeout: timedelta) -> int:
    return round(timeout.total_seconds() * 1000)


def _hang_up(lines: dict[int, socket.socket]) -> None:
    for line in lines.values():
        with suppress(OSError):
            line.shutdown(socket.SHUT_WR)


def _read(line: socket.socket, rank: int, inbox: _Inbox) -> None:
    """Put every message of one rank into the inbox, until it hangs up."""
    try:
        while True:
            sizes = _HEAD.unpack(read_exactly(line, _HEAD.size))
            key, note, payload = (read_exactly(line, size) for size in sizes)
            inbox.put(rank, key.decode(), Message(note.decode(), payload))
    except OSError:
        inbox.lose(rank, f"Connection closed by peer [{HOST}]")
    finally:
        line.close()


def _forget_after_fork() -> None:
    """A forked child has the lines too, but not what reads them: they are its parent's."""
    for mesh in list(_open):
        for line in mesh._lines.values():
            line.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
