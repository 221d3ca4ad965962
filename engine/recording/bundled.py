"""Opening the bundles that rough batches hold (see :mod:`stridescope.engine.events.bundles`).

A recording describes its own bundles in ``meta``: plain lists, in terms of its own codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stridescope.engine.events import Wire
from stridescope.engine.events.bundles import BUNDLES, FIRST_BUNDLE, Bundle

Kinds = npt.NDArray[np.uint8]


def described_bundles() -> list[Any]:
    """Describe this engine's bundles as plain JSON."""
    return [[code, bundle.parts, bundle.form] for code, bundle in BUNDLES.items()]


class Opener:
    """Knows the bundles of one recording."""

    def __init__(self, described: Sequence[Any], nested: Sequence[Sequence[int]], holders: Mapping[int, int]) -> None:
        """``nested`` says, by the code of an event, where in its wire tuple a list can stand; ``holders`` where bytes.

        Raises a TypeError, ValueError or LookupError for what describes no bundles.
        """
        self._bundles = {code: Bundle(parts, form) for code, parts, form in described}
        # By the code of a row, where in it a list can stand; anywhere in one of that form.
        self.nested: dict[int, list[int] | None] = {code: list(places) for code, places in enumerate(nested)}
        self.holders = dict(holders)  # by the code of a row, where in it bytes stand that may be kept elsewhere
        codes = [bytes([code]) for code in range(FIRST_BUNDLE)] + [b""] * (256 - FIRST_BUNDLE)
        for code, bundle in self._bundles.items():
            codes[code] = bundle.codes
            self.nested[code] = None if bundle.form == "called" else _places(bundle, nested)
            if (place := _holder(bundle, holders)) is not None:
                self.holders[code] = place
        self.holds = np.isin(np.arange(256), list(self.holders))
        self.counts = np.array([len(own) for own in codes])  # of events, by the code of a row
        self._codes = np.frombuffer(b"".join(codes), np.uint8)
        self._starts = np.cumsum(self.counts) - self.counts

    def kinds(self, codes: Kinds) -> Kinds:
        """Return the codes of the events, given those of the rows."""
        if codes.max(initial=0) < FIRST_BUNDLE:
            return codes
        counts = self.counts[codes]
        ends = np.cumsum(counts)
        shift = np.repeat(self._starts[codes] - ends + counts, counts)
        opened: Kinds = self._codes[np.arange(len(shift)) + shift]
        return opened

    def events(self, rows: Sequence[Sequence[Any]]) -> Iterator[Wire]:
        """Yield the events of these rows."""
        bundles = self._bundles
        for row in rows:
            if row[0] < FIRST_BUNDLE:
                yield tuple(row)
            else:
                yield from bundles[row[0]].open(row)


def _holder(bundle: Bundle, holders: Mapping[int, int]) -> int | None:
    """Where in a bundle's row the bytes of one of its events stand."""
    sources = [sources[holders[code] - 1] for code, sources in bundle.parts if code in holders]
    return bundle.place(sources[0]) if sources and isinstance(sources[0], int) else None


def _places(bundle: Bundle, nested: Sequence[Sequence[int]]) -> list[int]:
    """Where in a bundle's row a list can stand: what goes to such a place of one of its events."""
    found = (
        source for code, sources in bundle.parts for at, source in enumerate(sources, 1) if at in nested[code]
    )  # fmt: skip
    return sorted({source for source in found if isinstance(source, int)})
