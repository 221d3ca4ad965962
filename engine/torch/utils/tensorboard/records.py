"""Event files: records with checksums, in the form of TensorFlow's TFRecord."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
from typing import BinaryIO

from stridescope.engine.torch.utils.tensorboard import messages

VERSION = "brain.Event:2"
POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected: RFC 3720, appendix B.4
MASK = 0xA282EAD8  # TFRecord stores checksums rotated by 15 bits with this added
_numbers = itertools.count()


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def crc32c(data: bytes) -> int:
    """The CRC-32C of these bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    """The checksum as a record holds it."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """A record: its length, that length's checksum, the bytes, their checksum."""
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


class EventFile:
    """A new event file in ``folder``, which is made where it is missing.

    What is added is on the disk after ``max_queue`` events or ``flush_secs`` seconds, or after :meth:`flush`.
    """

    def __init__(self, folder: str, max_queue: int = 10, flush_secs: float = 120, suffix: str = "") -> None:
        os.makedirs(folder, exist_ok=True)
        self.folder, self._most, self._pause = folder, max_queue, flush_secs
        name = f"events.out.tfevents.{time.time():010.0f}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{suffix}"
        self._file: BinaryIO = open(os.path.join(folder, name), "ab")  # noqa: SIM115 (closed by close)
        self._waiting, self._flushed = 0, time.monotonic()
        self._file.write(record(messages.event(time.time(), None, version=VERSION)))
        self.flush()

    def add(self, summary: bytes, step: int | None, walltime: float | None) -> None:
        """Add a summary for a step; ``walltime`` is seconds since 1970, by default now."""
        if self._file.closed:
            return
        when = time.time() if walltime is None else walltime
        self._file.write(record(messages.event(when, step, summary=summary)))
        self._waiting += 1
        if self._waiting >= self._most or time.monotonic() - self._flushed >= self._pause:
            self.flush()

    def flush(self) -> None:
        """Put everything on the disk."""
        if not self._file.closed:
            self._file.flush()
        self._waiting, self._flushed = 0, time.monotonic()

    def close(self) -> None:
        """Put everything on the disk and add no more."""
        self._file.close()
