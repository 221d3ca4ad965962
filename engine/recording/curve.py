"""The allocator's curve: bytes allocated and reserved over the whole run."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterator

import numpy as np

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
from stridescope.engine.recording.columns import Batch, Ints

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


class Curve:
    """Grows with the recording: each batch is read once."""

    def __init__(self) -> None:
        self._until = 0
        self._sizes: dict[int, int] = {}
        self._allocated = self._reserved = 0
        self._points: list[tuple[int, int, int]] = []

    def add(self, batches: Batches, first: int) -> None:
        """Take in the batch that begins at ``first``, if it is new."""
        if first < self._until:
            return
        batch = batches.batch(first)
        for step, effect, address, size in sorted(_moves(batch)):
            self._move(effect, address, size)
            self._points.append((step, self._allocated, self._reserved))
        self._until = first + len(batch.kinds)

    def _move(self, effect: int, address: int, size: int) -> None:
        if effect == _HANDED_OUT:
            self._sizes[address] = size
            self._allocated += size
        elif effect == _TAKEN_BACK:
            # A block that waits for another stream counts as allocated no more: its later return changes nothing.
            self._allocated -= self._sizes.pop(address, 0)
        else:
            self._reserved += size if effect == _RESERVED else -size

    def until(self, step: int) -> tuple[Ints, Ints, Ints]:
        """Return steps, bytes allocated and bytes reserved up to a step."""
        stop = bisect.bisect_right(self._points, step, key=operator.itemgetter(0))
        points = np.array(self._points[:stop], np.int64).reshape(-1, 3)
        return points[:, 0], points[:, 1], points[:, 2]


def _moves(batch: Batch) -> Iterator[tuple[int, int, int, int]]:
    for event, effect in _EFFECTS.items():
        steps = batch.steps_of(event).tolist()
        sizes = batch.ints(event, "size").tolist() or [0] * len(steps)
        for step, address, size in zip(steps, batch.ints(event, "address").tolist(), sizes, strict=True):
            yield step, effect, address, size
