"""The other end of the worker's line: starts a worker, sends commands, receives replies. Plain Python, no Qt."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Self, TypeVar

from stridescope.engine.worker import protocol
from stridescope.engine.worker.crash import last_words
from stridescope.engine.worker.protocol import Command, Ended, Start

GRACE = 0.4  # seconds that a stopped worker has before it is killed
PATIENCE = 0.45  # seconds in which a worker answers a pause, be it that it is busy
MOST_WORDS = 1000  # lines: a dump has some for each call of each thread
T = TypeVar("T")


class WorkerTimeout(Exception):
    """The worker did not say in time what was waited for."""


class WorkerClient:
    """A worker and the line to it.

    :meth:`fileno` can be watched; whoever is told that it is readable calls :meth:`receive`. What the worker writes
    to its own stderr (a crash's last words) gathers in :attr:`last_words`.
    """

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self.process, self._connection = process, connection
        self._inbox, self._waiting = protocol.Inbox(), deque[Any]()
        self._words: deque[bytes] = deque(maxlen=MOST_WORDS)
        self._ended: Ended | None = None
        self._stopping, self._answer_due = False, 0.0
        self._last: Any = None
        self._listener = threading.Thread(target=self._listen, name="stridescope-last-words", daemon=True)
        self._listener.start()

    @classmethod
    def start(
        cls,
        script: str,
        argv: Sequence[str] = (),
        recording_path: str = "",
        *,
        python: str = sys.executable,
        **options: Any,
    ) -> Self:
        """Start a worker for a program; ``options`` are further fields of :class:`~protocol.Start`."""
        ours, theirs = _socket_pair()
        with theirs:
            process = _spawn(python, theirs)
        client = cls(process, _accepted(ours))
        client.send(Start(script, tuple(argv), recording=recording_path, **options))
        return client

    def fileno(self) -> int:
        """Return the number of the line, to wait on."""
        return self._connection.fileno()

    def send(self, command: Command) -> None:
        """Send a command; one that comes too late for the worker is dropped."""
        try:
            self._connection.sendall(protocol.pack(command))
        except OSError:
            return
        if isinstance(command, protocol.Pause):
            self._answer_due = time.monotonic() + PATIENCE
        elif isinstance(command, protocol.Stop):
            self._stopping = True
            threading.Thread(target=self._insist, name="stridescope-stop", daemon=True).start()

    def receive(self, timeout: float = 0.0) -> list[Any]:
        """Return the replies that came within a time; the last one ever is always :class:`Ended`."""
        self._gather(timeout)
        replies = list(self._waiting)
        self._waiting.clear()
        return replies

    def _gather(self, timeout: float) -> None:
        """Wait for replies; when a pause stays without any, say ourselves that the worker is busy.

        A call of C code that keeps the interpreter's lock leaves the worker unable to say so.
        """
        if self._waiting or self._ended is not None:
            return
        if due := self._answer_due:
            timeout = min(timeout, max(due - time.monotonic(), 0.0))
        if select.select([self], [], [], timeout)[0]:
            self._read()
        elif due and time.monotonic() >= due:
            self._answer_due = 0.0
            self._waiting.append(protocol.Busy())

    def _read(self) -> None:
        try:
            piece = self._connection.recv(1 << 16)
        except OSError:
            piece = b""
        for reply in self._inbox.feed(piece):
            self._ended = reply if isinstance(reply, Ended) else self._ended
            self._last = reply
            if not isinstance(reply, protocol.Running):
                self._answer_due = 0.0
            self._waiting.append(reply)
        if not piece and self._ended is None:
            self._ended = Ended(self.process.wait(), self._why())
            self._listener.join(PATIENCE)  # a child that it leaves behind may keep its stderr open
            self._waiting.append(self._ended)

    def _why(self) -> str:
        """Return the reason why the worker is gone, when it could not tell itself."""
        if isinstance(self._last, protocol.Failed):
            return "refused"
        return "stopped" if self._stopping else "killed"

    def wait(self, kind: type[T] | tuple[type[T], ...], timeout: float = 30.0) -> T:
        """Return the next reply of a kind (or one of some kinds), leaving out others; raises :class:`WorkerTimeout`."""
        until = time.monotonic() + timeout
        passed: list[Any] = []
        while (left := until - time.monotonic()) > 0:
            self._gather(left)
            while self._waiting:
                reply = self._waiting.popleft()
                if isinstance(reply, kind):
                    return reply
                passed.append(reply)
            if self._ended is not None:
                break
        raise WorkerTimeout(f"no {kind} from the worker, only {passed}; its last words: {self.last_words}")

    @property
    def last_words(self) -> str:
        """What the worker wrote to its stderr, such as the dump of a crash."""
        return b"".join(self._words).decode(errors="replace")

    @property
    def crash(self) -> str:
        """What there is to say of a crash: its name, and the script's calls that led there; "" where nothing is."""
        return last_words(self.last_words)

    def kill(self) -> None:
        """End the worker and its children on the spot; its recording is complete up to the last flush."""
        self._kill()
        self.process.wait()

    def _kill(self) -> None:
        if os.name == "nt":
            self.process.kill()
        elif self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # it leads a group of its own, see _spawn

    def close(self) -> None:
        """Let go of the worker; one that still runs is killed."""
        if self.process.poll() is None:
            self.kill()
        self._connection.close()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _insist(self) -> None:
        """Kill a worker that does not stop when it is asked to."""
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._kill()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        try:
            for line in self.process.stderr:
                self._words.append(line)
        except ValueError:  # closed while we listened
            return


def worker_command(python: str = sys.executable) -> list[str]:
    """Return how a worker is started; a frozen program is its own Python."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "--worker"]
    return [python, "-P", "-m", "stridescope.engine.worker"]


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return two ends: ours and the worker's, or where it cannot inherit one, two listeners on this machine."""
    if os.name != "nt":
        return socket.socketpair()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1)
    return listener, listener.dup()


def _spawn(python: str, theirs: socket.socket) -> subprocess.Popen[bytes]:
    inherited = os.name != "nt"
    address = str(theirs.fileno()) if inherited else "{}:{}".format(*theirs.getsockname())
    return subprocess.Popen(
        [*worker_command(python), address],
        pass_fds=[theirs.fileno()] if inherited else (),
        start_new_session=inherited,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _accepted(ours: socket.socket) -> socket.socket:
    if os.name != "nt":
        return ours
    with ours:
        ours.settimeout(30)  # a worker that dies before it calls must not hang the window
        return ours.accept()[0]
