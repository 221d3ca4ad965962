"""The breakpoints of the script that is open: kept per script, with how often each was met.

Their lines are those of the text in the editor: an edit there moves them, and one made elsewhere is found out when the
script is opened again. The run that goes on may be one of the text before the edit, see :meth:`Points.of_run`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from PySide6.QtCore import QObject, Signal

from stridescope.app.by_script import ByScript
from stridescope.app.moved_lines import Surroundings, found_again, shifted, surroundings
from stridescope.app.script_file import lines_on_disk
from stridescope.app.text import tr
from stridescope.app.values import size_text
from stridescope.engine.worker.protocol import Breakpoint

_KEPT = ByScript("breakpoints/1")


class Points(QObject):
    """Every breakpoint; ``changed`` tells of other breakpoints, ``counted`` that some were met."""

    changed = Signal()
    counted = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.remember = False  # whether they are kept for the next time this script is opened
        self.all: tuple[Breakpoint, ...] = ()
        self.hits: dict[Breakpoint, int] = {}
        self.remarks: dict[Breakpoint, str] = {}  # what else is to be said of one in this run
        self.script = ""  # the file whose breakpoints they are
        self.lines_of: Callable[[str], Sequence[str]] = lines_on_disk  # of a file, as the editor has it
        self.run_line: Callable[[str, int], int] = lambda path, line: line  # in the text that runs; 0 where it is new
        self._around: dict[Breakpoint, Surroundings] = {}  # what was there when its line was right

    def open(self, script: str) -> None:
        """Take up the breakpoints of a script; those of the same script stay as they are."""
        script = os.path.realpath(script) if script else ""
        self.hits, self.remarks = {}, {}
        if script != self.script:
            self.script = script
            self._around = dict(_stored(script)) if self.remember else {}
            self.all = tuple(self._around)
        found = [self._found_again(point) for point in self.all]
        self._set(dict.fromkeys(found))

    def _found_again(self, point: Breakpoint) -> Breakpoint:
        """Return a breakpoint on the line that says what its line said, after an edit in another editor."""
        around = self._around.get(point)
        if not point.line or around is None:
            return point
        return dataclasses.replace(point, line=found_again(lines_on_disk(point.path), point.line, around))

    def shift(self, path: str, first: int, from_start: bool, by: int) -> None:
        """Move breakpoints with the lines of a file that is edited, as :func:`.moved_lines.shifted` says."""
        moved = [
            dataclasses.replace(point, line=shifted(point.line, first, from_start, by))
            if point.line and point.path == path
            else point
            for point in self.all
        ]
        self.hits = {new: self.hits[old] for old, new in zip(self.all, moved, strict=True) if old in self.hits}
        self._set(dict.fromkeys(moved))

    def of_run(self) -> dict[Breakpoint, Breakpoint]:
        """Return the breakpoints as the text that runs has their lines, and what they are here; new lines have none."""
        found: dict[Breakpoint, Breakpoint] = {}
        for point in self.all:
            line = self.run_line(point.path, point.line) if point.line else 0
            if line or not point.line:
                found.setdefault(dataclasses.replace(point, line=line), point)
        return found

    @property
    def enabled(self) -> tuple[Breakpoint, ...]:
        """Those that stop, by the lines of the text that runs."""
        return tuple(point for point in self.of_run() if point.enabled)

    def lines(self) -> dict[str, set[int]]:
        """Return the lines with breakpoints by file, enabled or not."""
        found: dict[str, set[int]] = {}
        for point in self.all:
            if point.kind == "line":
                found.setdefault(point.path, set()).add(point.line)
        return found

    def toggle_line(self, path: str, line: int) -> None:
        """Set a breakpoint on a line, or remove those that are there."""
        there = [point for point in self.all if (point.kind, point.path, point.line) == ("line", path, line)]
        if there:
            self._set(point for point in self.all if point not in there)
        else:
            self.add(Breakpoint(path=path, line=line))

    def add(self, point: Breakpoint) -> None:
        """Add a breakpoint; one that is there already stays the only one of its kind."""
        self._set(dict.fromkeys([*self.all, point]))

    def replace(self, place: int, point: Breakpoint) -> None:
        """Put another in the place of one; how often that was met is forgotten."""
        self._set((*self.all[:place], point, *self.all[place + 1 :]))

    def remove(self, place: int) -> None:
        """Remove one."""
        self._set((*self.all[:place], *self.all[place + 1 :]))

    def toggle(self, place: int) -> None:
        """Let one stop no more, or again."""
        point = self.all[place]
        self.replace(place, dataclasses.replace(point, enabled=not point.enabled))

    def toggle_all(self) -> None:
        """Let none stop, or all again."""
        on = not any(point.enabled for point in self.all)
        self._set(dataclasses.replace(point, enabled=on) for point in self.all)

    def count(self, points: Iterable[Breakpoint], hits: Iterable[int]) -> None:
        """Take note of how often breakpoints were met."""
        here = self.of_run()
        self.hits.update((here.get(point, point), times) for point, times in zip(points, hits, strict=True))
        self.counted.emit()

    def remark(self, remarks: dict[Breakpoint, str]) -> None:
        """Take note of what else is to be said of breakpoints in this run."""
        if remarks != self.remarks:
            self.remarks = remarks
            self.counted.emit()

    def _set(self, points: Iterable[Breakpoint]) -> None:
        self.all = tuple(points)
        lines = {path: self.lines_of(path) for path in {point.path for point in self.all if point.line}}
        self._around = {point: surroundings(lines.get(point.path, ()), point.line) for point in self.all}
        if self.remember:
            lasting = [point for point in self.all if not is_passing(point)]
            _KEPT.keep(self.script, [{**dataclasses.asdict(p), "around": self._around[p]} for p in lasting])
        self.changed.emit()


def is_passing(point: Breakpoint) -> bool:
    """Whether it means something in one run only: a tensor by its id, which is another's in the next."""
    return point.kind == "tensor" and not point.line


def _stored(script: str) -> Iterator[tuple[Breakpoint, Surroundings]]:
    for kept in _KEPT.of(script):
        try:
            fields = dict(kept)
            around = tuple(map(str, fields.pop("around", ())))
            yield Breakpoint(**fields), around
        except (TypeError, ValueError):  # of another version, or edited by hand
            continue


WHAT = {
    "line": "a line is reached",
    "op": "an op runs",
    "tensor": "something happens to the selected tensor",
    "copy": "a copy is silently made",
    "noncontiguous": "a non-contiguous tensor is made",
    "allocation": "memory is allocated",
    "free": "memory is freed",
    "split": "a block is split",
    "reserved": "reserved memory passes a size",
    "notfinite": "a gradient is NaN or inf",
    "mutated": "a saved tensor is mutated",
    "backward": "a backward pass begins",
    "node": "a backward node runs",
    "error": "something fails",
}
CHANGES = {"written": "is written", "viewed": "is viewed", "grad": "gets its grad", "freed": "is freed"}


def describe(point: Breakpoint) -> str:
    """Return a breakpoint in words: ``train.py:12``, ``op add``, ``tensor #7 is written``."""
    if point.kind == "line":
        return f"{os.path.basename(point.path)}:{point.line}"
    if point.kind == "op":
        return tr("op {name}", name=point.op)
    if point.kind == "tensor":
        return f"{_tensor_words(point)} {tr(CHANGES.get(point.change, point.change))}"
    if point.kind == "reserved":
        return tr("reserved memory passes {size}", size=size_text(point.number))
    return tr(WHAT.get(point.kind, point.kind))


def _tensor_words(point: Breakpoint) -> str:
    """Return a tensor as people know it, and where it is born: ``w (train.py:12)``."""
    if not point.line:
        return point.name if point.name and not point.name.startswith("#") else tr("tensor #{id}", id=point.number)
    place = f"{os.path.basename(point.path)}:{point.line}"
    if point.name and not point.name.startswith("#"):
        return f"{point.name} ({place})"
    return tr("tensor {n} of {place}", n=point.number, place=place)
