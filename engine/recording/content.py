"""What a storage holds, read when first asked for.

A recording keeps small values beside the event and larger ones once each, under a key. A :class:`Content` remembers
where its bytes are; writes to a part of a storage stack up as patches until someone looks or the stack grows tall.
"""

from __future__ import annotations

from collections.abc import Callable

_TALLEST = 32


class Blob:
    """Bytes that a recording keeps elsewhere, under a key."""

    __slots__ = ("_load", "_nbytes", "key")

    def __init__(self, key: bytes, nbytes: int, load: Callable[[bytes], bytes]) -> None:
        self.key, self._nbytes, self._load = key, nbytes, load

    def __len__(self) -> int:
        return self._nbytes

    def read(self) -> bytes:
        """Return the bytes."""
        return self._load(self.key)


class Content:
    """The bytes of a storage at one moment: ``piece`` from byte ``first`` on, the rest as ``under`` had it.

    It never changes, so states share it.
    """

    __slots__ = ("_first", "_height", "_piece", "_under", "nbytes")

    def __init__(self, piece: bytes | Blob, nbytes: int, first: int = 0, under: Content | None = None) -> None:
        self._piece, self._first, self.nbytes = piece, first, nbytes
        self._under = under
        self._height: int = 0 if under is None else under._height + 1
        if self._height > _TALLEST:
            self._flatten()

    @property
    def key(self) -> bytes | None:
        """The key under which exactly these bytes are kept already, or None."""
        whole = self._under is None and not self._first and len(self._piece) == self.nbytes
        return self._piece.key if whole and isinstance(self._piece, Blob) else None

    def read(self) -> bytes:
        """Return all bytes of the storage."""
        if self._under is None and not self._first:
            piece = self._piece.read() if isinstance(self._piece, Blob) else self._piece
            return piece if len(piece) == self.nbytes else piece[: self.nbytes].ljust(self.nbytes, b"\0")
        return self._flatten()

    def _flatten(self) -> bytes:
        patches: list[Content] = [self]
        while (under := patches[-1]._under) is not None:
            patches.append(under)
        whole = bytearray(self.nbytes)
        for patch in reversed(patches):
            patch._write(whole)
        self._piece, self._first, self._under, self._height = bytes(whole), 0, None, 0
        return self._piece

    def _write(self, whole: bytearray) -> None:
        piece = self._piece.read() if isinstance(self._piece, Blob) else self._piece
        stop = min(self._first + len(piece), len(whole))
        whole[self._first : stop] = piece[: max(0, stop - self._first)]


def written(under: Content | None, piece: bytes | Blob, first: int, nbytes: int) -> Content:
    """Return the content after ``piece`` was written from byte ``first`` on."""
    covers_all = first == 0 and len(piece) >= nbytes
    return Content(piece, nbytes, first, None if covers_all else under)
