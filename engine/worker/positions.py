"""Where in the user's source the machine is: the frame, and the exact range of the expression that runs."""

from __future__ import annotations

import dis
import sys
import types
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stridescope.engine.autograd.relay import Relay

if TYPE_CHECKING:
    from stridescope.engine.worker.calls import Call

CACHE, EXTENDED, HANDLER = 0, dis.opmap["EXTENDED_ARG"], dis.opmap["PUSH_EXC_INFO"]
JUMPS = frozenset(dis.hasjrel + dis.hasjabs)
# Instructions that no line begins with: what runs before the first line, or is passed over.
RESUME, PASSED = dis.opmap["RESUME"], ("END_FOR", "END_ASYNC_FOR", "END_SEND")
NO_STARTS = frozenset({CACHE, RESUME, *(dis.opmap[name] for name in PASSED if name in dis.opmap)})
LONG = 120  # lines

Where = tuple[int, int, int, int, int, int]
NOWHERE: Where = (0, 0, 0, 0, 0, 0)


class Positions:
    """Answers ``journal.where`` from the frames that the tracer knows."""

    def __init__(self, calls: dict[int, Call]) -> None:
        self._calls = calls
        self.asked = 0  # how often an op asked
        self.hushed: set[types.CodeType] = set()  # functions whose calls are not recorded, because they ran no op

    def where(self) -> Where:
        """Return ``(frame, source, line, column, end_line, end_column)`` of the running user expression."""
        self.asked += 1
        # The caller is the op's own callable, and its caller is ours too: the method, operator or function that chose
        # this overload. Passing over their frames saves Python making objects of them.
        frame: types.FrameType | None = sys._getframe(3)
        calls = self._calls
        while frame is not None:
            call = calls.get(id(frame))
            if call is not None and call.code.object is frame.f_code:
                return call.places.get(frame.f_lasti) or _place(call, frame.f_lasti)
            if self.hushed and frame.f_code in self.hushed:
                self.wake(frame)
                continue
            frame = frame.f_back or Relay.behind.get(frame)
        return NOWHERE

    def wake(self, frame: types.FrameType) -> None:
        """Record the calls of a function again, which runs an op after all; the tracer puts its own way here."""
        self.hushed.discard(frame.f_code)

    def user_frames(self, frame: types.FrameType | None) -> Iterator[types.FrameType]:
        """Yield the frames of the user's files, from ``frame`` outwards, through the threads that wait for this one."""
        while frame is not None:
            if self._known(frame):
                yield frame
            frame = frame.f_back or Relay.behind.get(frame)

    def user_frame(self, frame: types.FrameType | None) -> types.FrameType | None:
        """Return the nearest frame of the user's files."""
        return next(self.user_frames(frame), None)

    def depth(self, frame: types.FrameType | None) -> int:
        """Count the frames of the user's files from ``frame`` outwards."""
        return sum(1 for _ in self.user_frames(frame))

    def _known(self, frame: types.FrameType) -> bool:
        call = self._calls.get(id(frame))
        return call is not None and call.code.object is frame.f_code


def _place(call: Call, instruction: int) -> Where:
    """Find a place the first time that a call asks for it."""
    spans = call.code.spans or call.code.read_spans()
    place = call.places[instruction] = (call.id, call.code.source, *spans[instruction >> 1])
    return place


def spans_of(code: types.CodeType) -> list[tuple[int, int, int, int]]:
    """Return the source range of every instruction of a code object; 0 where the compiler gave none."""
    return [
        (line or 0, column or 0, end_line or line or 0, end_column or 0)
        for line, end_line, column, end_column in code.co_positions()
    ]


def span_at(frame: types.FrameType) -> tuple[int, int, int, int]:
    """Return the source range that a frame stands at."""
    return spans_of(frame.f_code)[frame.f_lasti >> 1]


def is_long(code: types.CodeType) -> bool:
    """Say whether the code has lines far from its first one."""
    return max((line or 0 for _, _, line in code.co_lines()), default=0) - code.co_firstlineno > LONG


def line_starts(code: types.CodeType) -> dict[int, int]:
    """Return the offsets of instructions at which a line may begin, with the line.

    Those are the ones after an instruction of another line, and those that jumps and exceptions lead to.
    """
    body, found, before = code.co_code, dict[int, int](), 0
    targets = frozenset(target for _, target in _jumps(body))
    for number, (line, *_) in enumerate(code.co_positions()):
        at, opcode = 2 * number, body[2 * number]
        if line and opcode not in NO_STARTS and (line != before or at in targets or opcode == HANDLER):
            found[at] = line
        before = 0 if opcode == RESUME else line or 0
    return found


def lines_after(code: types.CodeType) -> dict[int, set[int]]:
    """Return the lines that may be reached right after each line, itself left out: rather one too many.

    An exception may lead to any handler. Instructions of no line are passed through.
    """
    body, labels = code.co_code, list[int]()  # a line, or the negative of where a stretch without lines begins
    for number, (line, *_) in enumerate(code.co_positions()):
        labels.append(line or (labels[-1] if labels and labels[-1] <= 0 else -number))
    handlers = {label for label, opcode in zip(labels, body[::2], strict=True) if opcode == HANDLER}
    after: defaultdict[int, set[int]] = defaultdict(lambda: set(handlers))
    for label, following in zip(labels, labels[1:], strict=False):
        after[label].add(following)
    for origin, target in _jumps(body):
        after[labels[origin >> 1]].add(labels[target >> 1])
    return {line: _lines_among(after, line) for line in list(after) if line > 0}


def _lines_among(after: dict[int, set[int]], line: int) -> set[int]:
    """Return the lines that come after one, through instructions of no line."""
    found, waiting = {line}, [line]
    while waiting:
        fresh = after[waiting.pop()] - found
        found |= fresh
        waiting += [label for label in fresh if label <= 0]
    return {label for label in found if label > 0} - {line}


def _jumps(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield the offsets of each jump and of where it leads: counted from the end of the instruction with its caches."""
    argument = 0
    for at in range(0, len(body), 2):
        opcode, argument = body[at], argument << 8 | body[at + 1]
        if opcode == EXTENDED:
            continue
        if opcode in JUMPS:
            after = at + 2
            while after < len(body) and body[after] == CACHE:
                after += 2
            yield at, after - 2 * argument if "BACKWARD" in dis.opname[opcode] else after + 2 * argument
        argument = 0
