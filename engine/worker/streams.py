"""The script's standard streams: what it prints becomes events, what it reads comes from the window."""

from __future__ import annotations

import codecs
import io
import os
import queue
import select
import sys
import threading
from collections.abc import Callable
from typing import Any

from stridescope.engine.events import OutputWritten, journal

KEPT = 64 << 20  # the most bytes of output that one recording keeps
NOT_KEPT = f"\n[Stridescope keeps the first {KEPT >> 20} MiB of output; the rest is not recorded]\n"


class Told(io.RawIOBase):
    """The lowest layer of an output stream: passes bytes on and tells the recording of them."""

    left = KEPT  # shared by all streams of the process

    def __init__(self, stream: int, below: io.RawIOBase | None, encoding: str = "utf-8") -> None:
        super().__init__()
        self._stream, self._below = stream, below
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def writable(self) -> bool:
        """Say yes."""
        return True

    def fileno(self) -> int:
        """Return the number of the real stream."""
        return self._stream

    def isatty(self) -> bool:
        """Say whether the real stream is a terminal."""
        return self._below is not None and self._below.isatty()

    def write(self, data: Any) -> int:
        """Write to the real stream, if there is one, and to the recording."""
        piece = bytes(data)
        if self._below is not None:
            _write_all(self._below, piece)
        self.tell_of(piece)
        return len(piece)

    def go_past_recording(self) -> None:
        """Write to the real stream from now on, even when the recording alone was told before."""
        self._below = self._below or io.FileIO(self._stream, "w", closefd=False)

    def tell_of(self, piece: bytes) -> None:
        """Tell the recording of bytes that were written, up to what it keeps."""
        send, text = journal.emit, self._decoder.decode(piece)
        if send is None or not text or Told.left < 0:
            return
        Told.left -= len(piece)
        send((OutputWritten.code, self._stream, (text if Told.left >= 0 else NOT_KEPT).replace("\r\n", "\n")))


def _write_all(below: io.RawIOBase, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[below.write(view) or 0 :]


def record_output(pass_on: bool = True) -> None:
    """Let the recording hear of everything that Python prints; with ``pass_on`` the real streams get it too."""
    sys.stdout = _told(1, sys.stdout, pass_on)
    sys.stderr = _told(2, sys.stderr, pass_on)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget_after_fork)


def _told(number: int, original: Any, pass_on: bool) -> io.TextIOWrapper:
    """Return a stream that stands for the original: same name, encoding and file number, ended at every line."""
    original.flush()
    below = getattr(original.buffer, "raw", original.buffer) if pass_on else None  # `python -u` has no buffer
    encoding = original.encoding if pass_on else "utf-8"
    buffer = io.BufferedWriter(Told(number, below, encoding))
    stream = io.TextIOWrapper(buffer, encoding, original.errors, line_buffering=True)
    stream.mode = "w"  # type: ignore[misc]
    return stream


def _forget_after_fork() -> None:
    """A forked child's output is its own: it goes to the real streams only."""
    Told.left = -1
    for stream in (sys.stdout, sys.stderr):
        if isinstance(raw := getattr(getattr(stream, "buffer", None), "raw", None), Told):
            raw.go_past_recording()


class InputPipe(io.RawIOBase):
    """Standard input read from file number 0; says so when the script has to wait for it."""

    def __init__(self, wanted: Callable[[], None]) -> None:
        super().__init__()
        self._wanted = wanted

    def readable(self) -> bool:
        """Say yes."""
        return True

    def fileno(self) -> int:
        """Return 0."""
        return 0

    def readinto(self, buffer: Any) -> int:
        """Read what is there; when nothing is, tell the window and wait."""
        if os.name == "nt" or not select.select([0], [], [], 0)[0]:
            self._wanted()
        data = os.read(0, len(buffer))
        buffer[: len(data)] = data
        return len(data)


class InputFeeder:
    """Feeds the script's standard input from commands, in a thread of its own: a full pipe must not block others."""

    def __init__(self, wanted: Callable[[], None]) -> None:
        end, self._pipe = os.pipe()
        os.dup2(end, 0)
        os.close(end)
        self._texts: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        sys.stdin = io.TextIOWrapper(io.BufferedReader(InputPipe(wanted)), "utf-8")
        threading.Thread(target=self._feed, name="stridescope-input", daemon=True).start()

    def send(self, text: str, end: bool) -> None:
        """Give the script this text, and with ``end`` nothing after it."""
        self._texts.put(text.encode())
        if end:
            self._texts.put(None)

    def _feed(self) -> None:
        try:
            while (piece := self._texts.get()) is not None:
                os.write(self._pipe, piece)
        except BrokenPipeError:
            return
        os.close(self._pipe)


def pump_descriptors() -> None:
    """Record what comes past Python's streams: children's and libraries' writes to file numbers 1 and 2."""
    for number in (1, 2):
        end, mouth = os.pipe()
        os.dup2(mouth, number)
        os.close(mouth)
        threading.Thread(target=_pump, args=(number, end), name="stridescope-output", daemon=True).start()


def _pump(number: int, end: int) -> None:
    told = Told(number, None)
    while piece := os.read(end, 1 << 16):
        told.tell_of(piece)
