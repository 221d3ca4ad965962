"""When to stop: breakpoints on lines, ops, tensors and on what the machine does.

A predicate that has to know the past (which counter belongs to a tensor, how much is reserved) reads it once from
the recording, when it is armed, and follows the events from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from stridescope.engine import events
from stridescope.engine.events import Event, Wire
from stridescope.engine.layout import is_contiguous
from stridescope.engine.worker.program import next_executable
from stridescope.engine.worker.protocol import Breakpoint

if TYPE_CHECKING:
    from stridescope.engine.recording.model import State
    from stridescope.engine.recording.reader import Recording

Test = Callable[[Wire], bool]
# What was recorded up to now, open as long as one looks at it; None where nothing was.
Past = Callable[[], AbstractContextManager["Recording | None"]]
NOT_FINITE = ("nan", "inf")


class BreakpointError(ValueError):
    """A breakpoint that cannot be armed; the message says why."""


class Armed:
    """A breakpoint at work: its test, its compiled condition and how often it was hit."""

    def __init__(self, breakpoint: Breakpoint, past: Past) -> None:
        self.breakpoint, self.hits = breakpoint, 0
        self.path = os.path.realpath(breakpoint.path) if breakpoint.kind == "line" else ""
        self.once = False
        self.condition = _compiled(breakpoint.condition) if breakpoint.condition else None
        self.test: Test = _test(breakpoint, past)

    def counts(self) -> bool:
        """Count a hit and say whether it is one to stop at."""
        self.hits += 1
        return self.hits > self.breakpoint.skip

    def __str__(self) -> str:
        wanted = self.breakpoint
        if wanted.kind == "line":
            return f"{os.path.basename(wanted.path)}:{wanted.line}"
        if wanted.kind == "tensor" and wanted.name:
            return f"{wanted.name} {wanted.change}"
        return " ".join(filter(None, (wanted.kind, wanted.op or wanted.change, str(wanted.number or ""))))


def _compiled(condition: str) -> object:
    try:
        return compile(condition.strip(), "<condition>", "eval")
    except (SyntaxError, ValueError) as error:
        raise BreakpointError(f"the condition {condition!r} is no expression: {error}") from None


def _test(breakpoint: Breakpoint, past: Past) -> Test:
    if breakpoint.kind == "line":
        line = next_executable(breakpoint.path, breakpoint.line)
        return lambda wire: wire[0] == events.LineReached.code and wire[3] == line
    if breakpoint.kind == "op":
        return _op_named(breakpoint.op)
    try:
        predicate = PREDICATES[breakpoint.kind]
    except KeyError:
        known = ", ".join(["line", "op", *PREDICATES])
        raise BreakpointError(f"there is no breakpoint of kind {breakpoint.kind!r}; there are {known}") from None
    return predicate(breakpoint, past)


def _op_named(wanted: str) -> Test:
    """Match an op by its full name, its name without the namespace, or without the overload as well."""
    bare = wanted.removeprefix("aten::")

    def test(wire: Wire) -> bool:
        if wire[0] != events.OpBegan.code:
            return False
        name = str(wire[1]).removeprefix("aten::")
        return bare in (name, name.partition(".")[0])

    return test


def _on(*kinds: type[Event]) -> Callable[[Breakpoint, Past], Test]:
    """Return a predicate that is true for every event of some kinds."""
    codes = frozenset(kind.code for kind in kinds)
    return lambda breakpoint, past: lambda wire: wire[0] in codes


def _noncontiguous(breakpoint: Breakpoint, past: Past) -> Test:
    return lambda wire: wire[0] == events.TensorMade.code and not is_contiguous(wire[3], wire[4])


def _state_now(past: Past) -> State | None:
    with past() as recording:
        return recording.state(recording.steps - 1) if recording is not None else None


class _Reserved:
    """Reserved memory passes a size."""

    def __init__(self, breakpoint: Breakpoint, past: Past) -> None:
        now = _state_now(past)
        self._limit = breakpoint.number
        self._reserved = sum(segment.size for segment in now.allocator.segments.values()) if now else 0

    def __call__(self, wire: Wire) -> bool:
        before = self._reserved
        if wire[0] in (events.SegmentAllocated.code, events.SegmentMapped.code):
            self._reserved += wire[3]
        elif wire[0] in (events.SegmentFreed.code, events.SegmentUnmapped.code):
            self._reserved -= wire[3]
        return before <= self._limit < self._reserved


class _Tensors:
    """What the tensor predicates have in common: which storage and which version counter each tensor has."""

    def __init__(self, breakpoint: Breakpoint, past: Past) -> None:
        now = _state_now(past)
        tensors = now.tensors.values() if now else ()
        self.storages = {tensor.id: tensor.storage for tensor in tensors}
        self.counters = {tensor.id: tensor.counter for tensor in tensors}
        self.dtypes = {tensor.storage: tensor.dtype for tensor in tensors}
        self.breakpoint, self.state = breakpoint, now

    def follow(self, wire: Wire) -> None:
        """Keep up with tensors that are made."""
        if wire[0] == events.TensorMade.code:
            self.storages[wire[1]], self.counters[wire[1]] = wire[2], wire[8]
            self.dtypes[wire[2]] = wire[6]


class _TensorChanges(_Tensors):
    """A tensor is written, viewed, given a gradient or freed; it may be one that is not made yet."""

    def __init__(self, breakpoint: Breakpoint, past: Past) -> None:
        from stridescope.engine.recording.births import Births

        super().__init__(breakpoint, past)
        self._births: Births | None = None
        if breakpoint.line:
            with past() as recording:
                self._births = Births(breakpoint.path, breakpoint.line, recording)

    def _tensor(self, wire: Wire) -> int:
        """Return the id of the tensor that is meant, 0 as long as it is not born."""
        number, births = self.breakpoint.number, self._births
        if births is None:
            return number
        if len(births.tensors) < number:
            births.follow(wire)
        return births.tensors[number - 1] if 0 < number <= len(births.tensors) else 0

    def __call__(self, wire: Wire) -> bool:
        self.follow(wire)
        number, code = self._tensor(wire), wire[0]
        if not number:
            return False
        what: int = wire[1]
        match self.breakpoint.change:
            case "written":
                return code == events.VersionBumped.code and what == self.counters.get(number)
            case "viewed":
                return code == events.TensorMade.code and bool(wire[7] == number)
            case "grad":
                return code in (events.GradSet.code, events.GradAccumulated.code) and what == number
            case _:
                return code == events.TensorFreed.code and what == number


class _SavedMutated(_Tensors):
    """An in-place write reaches a tensor that a node saved for backward."""

    def __init__(self, breakpoint: Breakpoint, past: Past) -> None:
        super().__init__(breakpoint, past)
        nodes = self.state.nodes.values() if self.state else ()
        self._saved = {
            node.id: {self.counters.get(saved.tensor, 0) for saved in node.saved} for node in nodes if not node.freed
        }

    def __call__(self, wire: Wire) -> bool:
        self.follow(wire)
        if wire[0] == events.TensorSaved.code:
            self._saved.setdefault(wire[1], set()).add(self.counters.get(wire[3], 0))
        elif wire[0] in (events.SavedFreed.code, events.NodeFreed.code):
            self._saved.pop(wire[1], None)
        return wire[0] == events.VersionBumped.code and any(wire[1] in counters for counters in self._saved.values())


class _GradientNotFinite(_Tensors):
    """A gradient that the backward engine sends or sets holds NaN or inf."""

    def __init__(self, breakpoint: Breakpoint, past: Past) -> None:
        super().__init__(breakpoint, past)
        self._bad: set[int] = set()

    def __call__(self, wire: Wire) -> bool:
        self.follow(wire)
        code = wire[0]
        if code == events.StorageWritten.code:
            self._judge(wire[1], self._not_finite(wire[1], wire[3]))
        elif code == events.StorageSummarised.code:
            ends = f"{wire[3]} {wire[4]}"
            self._judge(wire[1], wire[6] > 0 or any(word in ends for word in NOT_FINITE))
        elif code == events.GradientSent.code:
            return self.storages.get(wire[4]) in self._bad
        return code in (events.GradSet.code, events.GradAccumulated.code) and self.storages.get(wire[2]) in self._bad

    def _judge(self, storage: int, bad: bool) -> None:
        (self._bad.add if bad else self._bad.discard)(storage)

    def _not_finite(self, storage: int, values: bytes) -> bool:
        import numpy as np

        dtype = {"bfloat16": "", "float16": "f2", "float32": "f4", "float64": "f8"}.get(
            self.dtypes.get(storage, ""), ""
        )
        if not dtype or len(values) % np.dtype(dtype).itemsize:
            return False
        return not bool(np.isfinite(np.frombuffer(values, dtype)).all())


PREDICATES: dict[str, Callable[[Breakpoint, Past], Test]] = {
    "tensor": _TensorChanges,
    "copy": _on(events.CopyMade),
    "noncontiguous": _noncontiguous,
    "split": _on(events.BlockSplit),
    "allocation": _on(events.BlockAllocated, events.StorageMade),
    "free": _on(events.BlockFreed, events.StorageFreed),
    "reserved": _Reserved,
    "notfinite": _GradientNotFinite,
    "mutated": _SavedMutated,
    "backward": _on(events.BackwardBegan),
    "node": _on(events.NodeBegan),
    "error": _on(events.ExceptionRaised, events.OpFailed, events.OutOfMemory),
}
