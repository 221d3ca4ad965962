"""PyTorch's checkpoint files: a zip archive of stored (not compressed) records under one folder."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from typing import Any

ALIGNMENT = 64  # where in the file a record's bytes begin, so that they can be mapped into memory
_LOCAL_HEADER = 30  # bytes of a zip entry's header before its name
_DATE = (1980, 1, 1, 0, 0, 0)


class ArchiveWriter:
    """Writes a checkpoint; ``name`` is the folder that all records lie in."""

    def __init__(self, file: Any, name: str) -> None:
        self.file, self.name = file, name
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self.checksum = 0

    def record(self, name: str, data: bytes) -> None:
        """Add a record, padded so that its bytes are aligned."""
        path = f"{self.name}/{name}"
        entry = zipfile.ZipInfo(path, _DATE)
        begins = self.zip.fp.tell() + _LOCAL_HEADER + len(path.encode()) + 4  # type: ignore[union-attr]
        padding = -begins % ALIGNMENT
        entry.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        self.zip.writestr(entry, data)
        self.checksum = zlib.crc32(name.encode(), zlib.crc32(data, self.checksum))

    def close(self) -> None:
        """Add what ends every checkpoint."""
        self.record("version", b"3\n")
        self.record(".data/serialization_id", f"{self.checksum:040d}".encode())
        self.zip.close()


class ArchiveReader:
    """Reads a checkpoint; raises RuntimeError for a file that is no whole one."""

    def __init__(self, file: Any) -> None:
        try:
            self.zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile:
            raise RuntimeError(
                "PytorchStreamReader failed reading zip archive: failed finding central directory. This is an internal "
                "miniz error. If you are seeing this error, there is a high likelihood that your checkpoint file is "
                "corrupted. This can happen if the checkpoint was not saved properly, was transferred incorrectly, or "
                "the file was modified after saving."
            ) from None
        names = self.zip.namelist()
        self.name = names[0].partition("/")[0] if names else ""

    def has(self, name: str) -> bool:
        """Whether there is such a record."""
        return f"{self.name}/{name}" in self.zip.NameToInfo

    def record(self, name: str) -> bytes:
        """A record's bytes; raises RuntimeError when it isn't there or damaged."""
        if not self.has(name):
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        try:
            return self.zip.read(f"{self.name}/{name}")
        except zipfile.BadZipFile:
            raise RuntimeError(f"PytorchStreamReader failed reading file data/{name}: file read failed") from None


def is_zip(file: Any) -> bool:
    """Whether a zip archive begins where the file stands now; the place is kept."""
    place = file.tell()
    start = file.read(4)
    file.seek(place)
    return bool(start == b"PK\x03\x04")


def folder_name(file: Any) -> str:
    """What the folder inside the archive is called: like the file, or ``archive`` for a buffer."""
    if isinstance(file, io.BytesIO) or not isinstance(file, (str, os.PathLike)):
        return "archive"
    return os.path.splitext(os.path.basename(os.fspath(file)))[0] or "archive"
