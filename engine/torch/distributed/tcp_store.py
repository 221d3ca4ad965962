"""``TCPStore``: a store that one process serves to all over a socket.

A message is its length and a MessagePack array: the request [what to do, arguments…] or the answer [how it went,
result]. The server keeps a HashStore, and a thread for each client does in it what the client asks.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec

from stridescope.engine.torch.distributed.errors import DistError, DistNetworkError, DistStoreError, QueueEmptyError
from stridescope.engine.torch.distributed.store import (
    DEFAULT_TIMEOUT,
    HashStore,
    Store,
    as_amount,
    as_bytes,
    as_key,
    deadline,
)

_JOINED = "init/"  # counts the clients
_LENGTH = struct.Struct("!I")
TRY_AGAIN = 0.05  # seconds after which a client tries again to reach a server that is not there yet
_CLOSED = "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?"
_ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (DistStoreError, QueueEmptyError, ValueError, TypeError)
}


def read_exactly(line: socket.socket, size: int) -> bytes:
    """The next ``size`` bytes; raises ConnectionError when the other side hangs up before."""
    pieces = bytearray()
    while len(pieces) < size:
        piece = line.recv(min(size - len(pieces), 1 << 20))
        if not piece:
            raise ConnectionError("closed")
        pieces += piece
    return bytes(pieces)


def _send(line: socket.socket, message: Sequence[Any]) -> None:
    body = msgspec.msgpack.encode(message)
    line.sendall(_LENGTH.pack(len(body)) + body)


def _receive(line: socket.socket) -> list[Any]:
    (size,) = _LENGTH.unpack(read_exactly(line, _LENGTH.size))
    message: list[Any] = msgspec.msgpack.decode(read_exactly(line, size))
    return message


class Server:
    """Serves a HashStore at a port."""

    by_port: weakref.WeakValueDictionary[int, Server] = weakref.WeakValueDictionary()

    def __init__(self, host: str, port: int, listener: int | None = None) -> None:
        self._contents = HashStore()
        self._listener = _listening(host, port) if listener is None else socket.socket(fileno=listener)
        self.port: int = self._listener.getsockname()[1]
        self.by_port[self.port] = self
        lines: set[socket.socket] = set()
        weakref.finalize(self, _close, self._listener, lines).atexit = False
        arguments = (self._listener, self._contents, lines)
        threading.Thread(target=_accept, args=arguments, name="stridescope-store", daemon=True).start()

    def joined(self, expected: int, timeout: timedelta) -> int:
        """How many clients have joined, once they are as many as expected or the time is over."""
        with suppress(DistStoreError):
            self._contents.wait_until(lambda: self._contents.add(_JOINED, 0) >= expected, timeout)
        return self._contents.add(_JOINED, 0)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        if os.name != "nt":  # there it would let two processes have one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        code, name = error.errno or 0, errno.errorcode.get(error.errno or 0, "unknown")
        raise DistNetworkError(
            "The server socket has failed to listen on any local network address. port: "
            f"{port}, useIpv6: false, code: -{code}, name: {name}, message: {os.strerror(code).lower()}"
        ) from None
    return listener


def _close(listener: socket.socket, lines: set[socket.socket]) -> None:
    for line in (listener, *lines):
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in it
        line.close()


def _accept(listener: socket.socket, contents: HashStore, lines: set[socket.socket]) -> None:
    while True:
        try:
            line, _ = listener.accept()
        except OSError:  # closed
            return
        lines.add(line)
        threading.Thread(target=_serve, args=(line, contents, lines), name="stridescope-store", daemon=True).start()


def _serve(line: socket.socket, contents: HashStore, lines: set[socket.socket]) -> None:
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with suppress(OSError):
        while True:
            _send(line, _answer(contents, *_receive(line)))
    lines.discard(line)
    line.close()


def _answer(contents: HashStore, what: str, seconds: float, *arguments: Any) -> list[Any]:
    """Do what a client asks; ``seconds`` is how long it will wait."""
    patience = timedelta(seconds=seconds)
    try:
        own = contents.clone()  # it waits as long as its timeout is
        own.set_timeout(patience)
        return ["", getattr(own, what)(*arguments)]
    except (DistError, ValueError, TypeError) as error:
        return [type(error).__name__, str(error)]


class TCPStore(Store):
    """A store that one process (``is_master``) serves at ``host_name:port``; port 0 lets the system choose one.

    Raises DistNetworkError when the server cannot be reached or the port is taken, DistStoreError when the master
    waits in vain for ``world_size`` processes.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        if not 0 <= port < 1 << 16:
            raise TypeError(f"TCPStore: port must be from 0 to 65535, but got {port}")
        self.set_timeout(timeout)
        self._host, self._lock = host_name, threading.Lock()
        self._server: Server | None = None
        if is_master:
            shared = Server.by_port.get(port) if multi_tenant else None
            self._server = shared or Server(host_name, port, master_listen_fd)
        self._port = self._server.port if self._server else port
        self._line = self._connected()
        self._uses_libuv = use_libuv
        if wait_for_workers and world_size is not None and world_size > 0:
            self._join(world_size)

    @property
    def host(self) -> str:
        """Where the server is."""
        return self._host

    @property
    def port(self) -> int:
        """The server's port."""
        return self._port

    @property
    def libuvBackend(self) -> bool:
        """What was asked for; there is one kind of server here."""
        return self._uses_libuv

    def _connected(self) -> socket.socket:
        end = deadline(self.timeout)
        while True:
            try:
                line = socket.create_connection((self._host, self._port), max(end - time.monotonic(), TRY_AGAIN))
                line.settimeout(None)
                line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return line
            except OSError:
                if time.monotonic() > end:
                    milliseconds = round(self.timeout.total_seconds() * 1000)
                    raise DistNetworkError(
                        f"The client socket has timed out after {milliseconds}ms while trying to connect to "
                        f"({self._host}, {self._port})."
                    ) from None
                time.sleep(TRY_AGAIN)  # the master is not there yet: nothing else tells when it is

    def _join(self, world_size: int) -> None:
        self._ask("add", _JOINED, 1)
        if self._server is not None and (joined := self._server.joined(world_size, self.timeout)) < world_size:
            seconds = int(self.timeout.total_seconds()) + 1
            raise DistStoreError(
                f"Timed out after {seconds} seconds waiting for clients. {joined}/{world_size} clients joined."
            )

    def _ask(self, what: str, *arguments: Any, timeout: timedelta | None = None, keys: Sequence[str] = ()) -> Any:
        patience = self.timeout if timeout is None else timeout
        try:
            with self._lock:
                _send(self._line, [what, patience.total_seconds(), *arguments])
                kind, result = _receive(self._line)
        except ConnectionError:
            raise DistNetworkError(_CLOSED) from None
        except OSError as error:
            raise DistNetworkError(os.strerror(error.errno or 0)) from None
        if not kind:
            return result
        if kind == "DistStoreError":
            named = ", ".join(f"/{key}" for key in keys)
            result = f"wait timeout after {round(patience.total_seconds() * 1000)}ms, keys: {named}"
        raise _ERRORS[kind](result)

    def set(self, key: str, value: str | bytes) -> None:
        """Store a value."""
        self._ask("set", as_key(key), as_bytes(value))

    def get(self, key: str) -> bytes:
        """The value of a key; raises DistStoreError when it does not come in time."""
        return bytes(self._ask("get", as_key(key), keys=[key]))

    def add(self, key: str, amount: int) -> int:
        """Add to a counter and return it; raises ValueError when the value there is no number."""
        return int(self._ask("add", as_key(key), as_amount(amount)))

    def append(self, key: str, value: str | bytes) -> None:
        """Lengthen a value."""
        self._ask("append", as_key(key), as_bytes(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set the key where it has the expected value (or none, when that is empty); return what it has then."""
        return bytes(self._ask("compare_set", as_key(key), as_bytes(expected_value), as_bytes(desired_value)))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there; raises DistStoreError when they do not come in time."""
        self._ask("wait", list(keys), timeout=timeout, keys=keys)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return bool(self._ask("check", list(keys)))

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether it was there."""
        return bool(self._ask("delete_key", as_key(key)))

    def num_keys(self) -> int:
        """How many keys there are, with the store's own."""
        return int(self._ask("num_keys"))

    def list_keys(self) -> list[str]:
        """All keys of the user's."""
        return [key for key in self._ask("list_keys") if key != _JOINED]

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of a queue."""
        self._ask("queue_push", as_key(key), as_bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the value at the head of a queue; without ``block`` an empty one raises QueueEmptyError."""
        return bytes(self._ask("queue_pop", as_key(key), block, keys=[key]))

    def queue_len(self, key: str) -> int:
        """How many values wait in a queue."""
        return int(self._ask("queue_len", as_key(key)))

    def has_extended_api(self) -> bool:
        """Yes."""
        return True

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until ``world_size`` processes have come here with this key; raises DistStoreError if they do not."""
        patience = self.timeout if timeout is None else timeout
        try:
            super().barrier(key, world_size, patience)
        except DistStoreError:
            milliseconds = round(patience.total_seconds() * 1000)
            raise DistStoreError(f"barrier timeout after {milliseconds}ms, key: {key}") from None

    def clone(self) -> TCPStore:
        """Another connection to the same server."""
        twin = TCPStore(self._host, self._port, timeout=self.timeout)
        twin._server = self._server
        return twin

    def __repr__(self) -> str:
        return f"TCPStore(host={self._host!r}, port={self._port}, server={self._server is not None})"

    def __del__(self) -> None:
        if hasattr(self, "_line"):
            self._line.close()


TCPStore.__module__ = "torch._C._distributed_c10d"
