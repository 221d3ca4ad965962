"""The allocator's curve: bytes allocated and reserved over the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import zstandard

from stridescope.engine.events import (
    BlockAllocated,
    BlockAwaitsEvent,
    BlockFreed,
    Event,
    SegmentAllocated,
    SegmentFreed,
    SegmentMapped,
    SegmentUnmapped,
)
from stridescope.engine.recording.batches import Batches
from stridescope.engine.recording.columns import Batch, DamagedBatch, Ints, decompress
from stridescope.engine.recording.rough import RoughBatch

_POINT = 3 * 8  # bytes
_LARGEST = 1 << 33
_HANDED_OUT, _TAKEN_BACK, _RESERVED, _RETURNED = range(4)
_EFFECTS: dict[type[Event], int] = {
    BlockAllocated: _HANDED_OUT,
    BlockAwaitsEvent: _TAKEN_BACK,
    BlockFreed: _TAKEN_BACK,
    SegmentAllocated: _RESERVED,
    SegmentMapped: _RESERVED,
    SegmentFreed: _RETURNED,
    SegmentUnmapped: _RETURNED,
}


CURVE_CODES = np.zeros(256, bool)
"""By the code of an event: whether it moves the curve."""
CURVE_CODES[[event.code for event in _EFFECTS]] = True


class Curve:
    """Grows with the recording: each batch is read once. A finished recording brings its curve along."""

    def __init__(self) -> None:
        self.read_until = 0  # the first step that was not read yet
        self._sizes: dict[int, int] = {}
        self._allocated = self._reserved = 0
        self._points = np.zeros((0, 3), np.int64)
        self._fresh: list[tuple[int, int, int]] = []

    def add(self, batches: Batches, first: int) -> bool:
        """Take in the batch that begins at ``first``; returns whether it was new."""
        if first < self.read_until:
            return False
        batch = batches.batch(first)
        for step, effect, address, size in sorted(_moves(batch)):
            self._move(effect, address, size)
            self._fresh.append((step, self._allocated, self._reserved))
        self.read_until = first + len(batch.kinds)
        return True

    def _move(self, effect: int, address: int, size: int) -> None:
        if effect == _HANDED_OUT:
            self._sizes[address] = size
            self._allocated += size
        elif effect == _TAKEN_BACK:
            # A block that waits for another stream counts as allocated no more: its later return changes nothing.
            self._allocated -= self._sizes.pop(address, 0)
        else:
            self._reserved += size if effect == _RESERVED else -size

    def _whole(self) -> Ints:
        if self._fresh:
            self._points = np.concatenate([self._points, np.array(self._fresh, np.int64)])
            self._fresh.clear()
        return self._points

    def until(self, step: int) -> tuple[Ints, Ints, Ints]:
        """Return steps, bytes allocated and bytes reserved up to a step."""
        points = self._whole()
        points = points[: np.searchsorted(points[:, 0], step, side="right")]
        return points[:, 0], points[:, 1], points[:, 2]

    def packed(self) -> tuple[int, bytes]:
        """The whole curve as a recording keeps it: up to which step it goes, and the points."""
        changes = np.diff(self._whole(), axis=0, prepend=0)
        return self.read_until, zstandard.ZstdCompressor(level=3).compress(changes.tobytes())

    def unpack(self, until: int, packed: bytes) -> None:
        """Take over a kept curve. Raises :class:`DamagedBatch` for one that cannot be."""
        numbers = np.frombuffer(decompress(packed, _LARGEST), np.uint8)
        if len(numbers) % _POINT:
            raise DamagedBatch("the memory curve is cut short")
        self._points = np.cumsum(numbers.view(np.int64).reshape(-1, 3), axis=0)
        self.read_until = until


def _moves(batch: Batch | RoughBatch) -> Iterator[tuple[int, int, int, int]]:
    for event, effect in _EFFECTS.items():
        steps = batch.steps_of(event).tolist()
        sizes = batch.ints(event, "size").tolist() or [0] * len(steps)
        for step, address, size in zip(steps, batch.ints(event, "address").tolist(), sizes, strict=True):
            yield step, effect, address, size
