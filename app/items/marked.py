"""Marked elements of a long row, in a form that answers "any between?" at once."""

from __future__ import annotations

import numpy as np


class Marked:
    """A mask and its running count."""

    def __init__(self, mask: np.ndarray) -> None:
        self.mask = mask
        self._sums = np.concatenate(([0], np.cumsum(mask, dtype=np.int32)))

    @property
    def count(self) -> int:
        """How many elements there are, marked or not."""
        return len(self.mask)

    @property
    def total(self) -> int:
        """How many are marked."""
        return int(self._sums[-1])

    def any_between(self, edges: np.ndarray) -> np.ndarray:
        """Return, for each two neighbouring edges, whether an element from the first up to the second is marked.

        Where both edges are the same, that element alone is asked.
        """
        low = edges[:-1].clip(0, self.count)
        high = np.maximum(edges[1:], edges[:-1] + 1).clip(0, self.count)
        found: np.ndarray = self._sums[high] > self._sums[low]
        return found


def runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """Return the half-open intervals in which ``mask`` is set."""
    steps = np.diff(np.concatenate(([0], mask.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist(), strict=True))
