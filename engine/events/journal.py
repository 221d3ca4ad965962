"""The journal: the one door through which events leave the engine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from stridescope.engine.events.base import Wire
from stridescope.engine.events.bundles import opening


class Journal:
    """The one door through which events leave the engine.

    ``emit`` is None while nothing records, so the unrecorded engine pays one attribute read; it takes single events,
    ``bundle`` takes bundles of them (:mod:`stridescope.engine.events.bundles`). ``keep_values`` is the
    largest storage, in bytes, whose contents are kept at every version; -1 keeps none. ``where`` tells which
    expression of the user's source is running: ``(frame, source, line, column, end_line, end_column)``.
    ``whole`` is ``emit`` where it takes bundles as they are, else None: nobody looks between two events then, and
    what is said late by the length of an op or a line is in time.
    """

    emit: Callable[[Wire], object] | None = None
    bundle: Callable[[Wire], object]  # takes bundles; set while ``emit`` is not None
    whole: Callable[[Wire], object] | None = None
    keep_values: int = -1
    special: int = 0  # how many active features need the dispatcher's full path
    full: bool = False  # whether every op must take it: something records, or a feature is active
    plain: bool = False  # whether something records and no feature is active: ops announce themselves
    quick: Callable[[Wire], object] | None = None  # ``whole``, while ops announce themselves

    def __init__(self) -> None:
        self.where: Callable[[], tuple[int, int, int, int, int, int]] = nowhere
        self.watchers: list[Callable[[bool], None]] = []

    def start(self, emit: Callable[[Wire], object], keep_values: int = -1, bundles: bool = False) -> None:
        """Send every event to ``emit`` from now on; where it takes no ``bundles`` they are opened before."""
        self.divert(emit, bundles)
        self.keep_values = keep_values
        self.require_full(0)
        for watcher in self.watchers:
            watcher(True)

    def divert(self, emit: Callable[[Wire], object], bundles: bool) -> None:
        """Send the events elsewhere while something records."""
        self.bundle = emit if bundles else opening(emit)
        self.emit, self.whole = emit, emit if bundles else None
        self.require_full(0)

    @contextlib.contextmanager
    def muted(self) -> Iterator[None]:
        """Keep what is done meanwhile out of the recording."""
        emit, whole = self.emit, self.whole
        self.emit = self.whole = None
        self.require_full(0)
        try:
            yield
        finally:
            self.emit, self.whole = emit, whole
            self.require_full(0)

    def watch(self, watcher: Callable[[bool], None]) -> None:
        """Tell ``watcher`` when recording starts and stops; now already, if it started before this was imported."""
        self.watchers.append(watcher)
        if self.emit is not None:
            watcher(True)

    def stop(self) -> None:
        """Record nothing more; the engine runs at full speed again."""
        self.emit = self.whole = None
        self.require_full(0)
        for watcher in self.watchers:
            watcher(False)

    def require_full(self, change: int) -> None:
        """Add ``change`` (+1 or -1) to the count of features that need the full path."""
        self.special += change
        self.full = self.emit is not None or self.special > 0
        self.plain = self.emit is not None and self.special == 0
        self.quick = self.whole if self.plain else None


def nowhere() -> tuple[int, int, int, int, int, int]:
    """The answer to ``journal.where`` while no worker knows the user's frames."""
    return 0, 0, 0, 0, 0, 0


journal = Journal()
