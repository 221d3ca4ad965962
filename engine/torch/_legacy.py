"""Checkpoints of PyTorch before 1.6: five pickles one after another, then the bytes of all storages.

The pickles are a magic number, the protocol's version, facts about the machine, the object itself and the list of the
storages' keys. Each storage is a count of elements (int64) and the elements.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
import tarfile
from typing import Any

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_MACHINE = {
    "protocol_version": PROTOCOL_VERSION, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4},
}  # fmt: skip
_COUNT = struct.Struct("<q")


def is_tar(file: Any) -> bool:
    """Whether a file is of the still older kind; the place in it is kept."""
    place = file.tell()
    try:
        with tarfile.open(fileobj=file, mode="r:"):
            return True
    except (tarfile.TarError, EOFError):
        return False
    finally:
        file.seek(place)


class LegacyReader:
    """The parts of a checkpoint; raises RuntimeError for a file that is none.

    ``pickled`` is the object's pickle; ``read_storages`` gives the bytes of each storage.
    """

    def __init__(self, file: Any, unpickled: Any) -> None:
        self._rest = io.BytesIO(file.read())
        if unpickled(self._next()) != MAGIC_NUMBER:
            raise RuntimeError("Invalid magic number; corrupt file?")
        version = unpickled(self._next())
        if version != PROTOCOL_VERSION:
            raise RuntimeError(f"Invalid protocol version: {version}")
        machine = unpickled(self._next())
        self.swapped = isinstance(machine, dict) and not machine.get("little_endian", True)
        self.pickled = self._next()
        self._keys: list[str] = unpickled(self._next())

    def _next(self) -> bytes:
        """The bytes of the next pickle, found without running it."""
        begin = self._rest.tell()
        try:
            for _ in pickletools.genops(self._rest):
                pass
        except ValueError:
            if begin == 0 and not self._rest.getbuffer().nbytes:
                raise EOFError("Ran out of input") from None
            raise RuntimeError("Invalid magic number; corrupt file?") from None
        end = self._rest.tell()
        return bytes(self._rest.getbuffer()[begin:end])

    def read_storages(self, sizes: dict[str, int]) -> dict[str, bytes]:
        """The bytes of every storage; ``sizes`` are the bytes of an element, by key."""
        found = {}
        for key in self._keys:
            (count,) = _COUNT.unpack(self._rest.read(_COUNT.size))
            wanted = count * sizes[key]
            data = self._rest.read(wanted)
            if len(data) < wanted:
                raise RuntimeError(
                    f"unexpected EOF, expected {wanted - len(data)} more bytes. The file might be corrupted."
                )
            found[key] = data
        return found


def write(file: Any, pickled: bytes, storages: list[tuple[str, int, bytes]], protocol: int) -> None:
    """Write a checkpoint; each storage is its key, its count of elements and its bytes."""
    for part in (MAGIC_NUMBER, PROTOCOL_VERSION, _MACHINE):
        pickle.dump(part, file, protocol=protocol)
    file.write(pickled)
    ordered = sorted(storages)
    pickle.dump([key for key, _, _ in ordered], file, protocol=protocol)
    for _, count, data in ordered:
        file.write(_COUNT.pack(count))
        file.write(data)
