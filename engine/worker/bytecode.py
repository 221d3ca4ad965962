"""Code objects taken apart into instructions and put together again, for CPython 3.11 and 3.12.

The compiler's tables (where each instruction stands in the source, which handler an exception leads to) are laid out
as in Objects/locations.md and Objects/exception_handling_notes.txt of CPython's own sources.
"""

from __future__ import annotations

import dis
import itertools
import opcode as opcodes
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

CACHES: Sequence[int] = opcodes._inline_cache_entries  # type: ignore[attr-defined]
ROOMS = [bytes(2 * count) for count in CACHES]
EXTENDED_ARG = dis.opmap["EXTENDED_ARG"]
FORWARD = frozenset(code for code in dis.hasjrel if "BACKWARD" not in dis.opname[code])
BACKWARD = frozenset(dis.hasjrel) - FORWARD

Place = tuple[int | None, int | None, int | None, int | None]  # line, its end, column, its end
Label = tuple[str, int]


class Handler(NamedTuple):
    """Where an exception leads: to a label, with so much left on the stack, perhaps with where it was raised."""

    label: Label
    depth: int
    lasti: bool


class Instruction(NamedTuple):
    """One instruction with its whole argument, or with the label that it jumps to."""

    opcode: int
    argument: int
    label: Label | None
    place: Place
    handler: Handler | None


def taken_apart(code: types.CodeType) -> list[Instruction]:
    """Return the instructions of a code object; those that others lead to have the label ``("", number)``."""
    body, places, handlers = code.co_code, list(code.co_positions()), list(_handlers(code.co_exceptiontable))
    starts, decoded = [], []
    begin = argument = 0
    at = 0
    while at < len(body):
        operation = body[at]
        argument = argument << 8 | body[at + 1]
        if operation != EXTENDED_ARG:
            starts.append(begin >> 1)
            decoded.append((operation, argument, at >> 1))
            at += 2 * CACHES[operation]
            begin, argument = at + 2, 0
        at += 2
    numbers = {start: number for number, start in enumerate(starts)}
    found, current = [], 0
    for operation, argument, unit in decoded:
        while current < len(handlers) and handlers[current][1] <= unit:
            current += 1
        handler = None
        if current < len(handlers) and handlers[current][0] <= unit:
            _, _, target, depth, lasti = handlers[current]
            handler = Handler(("", numbers[target]), depth, lasti)
        label: Label | None = None
        if operation in FORWARD or operation in BACKWARD:
            after = unit + 1 + CACHES[operation]
            label = ("", numbers[after - argument if operation in BACKWARD else after + argument])
        line, end_line, column, end_column = places[unit]
        found.append(Instruction(operation, argument, label, (line, end_line, column, end_column), handler))
    return found


class Assembly:
    """Instructions and labels in the order in which they are to stand."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.labels: dict[Label, int] = {}

    def add(
        self, operation: int, argument: int, place: Place, handler: Handler | None, label: Label | None = None
    ) -> None:
        """Add an instruction."""
        self.instructions.append(Instruction(operation, argument, label, place, handler))

    def mark(self, label: Label) -> None:
        """Put a label before the instruction that is added next."""
        self.labels[label] = len(self.instructions)

    def put_together(self, code: types.CodeType, consts: tuple[Any, ...], room: int) -> types.CodeType:
        """Return ``code`` with these instructions and constants, and with ``room`` for more values on its stack."""
        arguments, starts = self._laid_out()
        body = bytearray()
        for instruction, argument in zip(self.instructions, arguments, strict=True):
            if argument > 255:
                for shift in range((_units(argument) - 1) * 8, 0, -8):
                    body += bytes((EXTENDED_ARG, argument >> shift & 255))
            body.append(instruction.opcode)
            body.append(argument & 255)
            body += ROOMS[instruction.opcode]
        assert len(body) == 2 * starts[-1]
        return code.replace(
            co_code=bytes(body),
            co_consts=consts,
            co_stacksize=code.co_stacksize + room,
            co_linetable=_line_table(code.co_firstlineno, self._stretches(starts)),
            co_exceptiontable=self._exception_table(starts),
        )

    def _laid_out(self) -> tuple[list[int], list[int]]:
        """Return each instruction's argument, and where it begins; jumps grow until every one reaches its label."""
        jumps = [number for number, each in enumerate(self.instructions) if each.label is not None]
        arguments = [0 if each.label is not None else each.argument for each in self.instructions]
        sizes = [
            _units(argument) + CACHES[each.opcode] for argument, each in zip(arguments, self.instructions, strict=True)
        ]
        while True:
            starts = [0, *itertools.accumulate(sizes)]
            grown = False
            for number in jumps:
                jump = self.instructions[number]
                assert jump.label is not None
                distance = starts[self.labels[jump.label]] - starts[number + 1]
                arguments[number] = abs(distance)
                size = _units(arguments[number]) + CACHES[jump.opcode]
                if size > sizes[number]:
                    sizes[number], grown = size, True
            if not grown:
                return arguments, starts

    def _stretches(self, starts: Sequence[int]) -> Iterator[tuple[Place, int]]:
        """Yield places with how many units of the code stand there."""
        before, length = self.instructions[0].place, 0
        for number, instruction in enumerate(self.instructions):
            if instruction.place != before:
                yield before, length
                before, length = instruction.place, 0
            length += starts[number + 1] - starts[number]
        yield before, length

    def _exception_table(self, starts: Sequence[int]) -> bytes:
        table = bytearray()
        for handler, stretch in itertools.groupby(
            range(len(self.instructions)), lambda n: self.instructions[n].handler
        ):
            if handler is not None:
                numbers = list(stretch)
                begin, end = starts[numbers[0]], starts[numbers[-1] + 1]
                table += _big(begin, 128) + _big(end - begin) + _big(starts[self.labels[handler.label]])
                table += _big(handler.depth << 1 | handler.lasti)
        return bytes(table)


def _units(argument: int) -> int:
    """Return how many units an instruction takes with the prefixes that its argument needs."""
    return 1 if argument < 1 << 8 else 2 if argument < 1 << 16 else 3 if argument < 1 << 24 else 4


def _handlers(table: bytes) -> Iterator[tuple[int, int, int, int, bool]]:
    """Yield begin, end and target (in units of the code), depth, and whether the place is pushed too."""
    numbers = _bigs(table)
    for begin in numbers:
        length, target, depth = next(numbers), next(numbers), next(numbers)
        yield begin, begin + length, target, depth >> 1, bool(depth & 1)


def _bigs(table: bytes) -> Iterator[int]:
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            yield value
            value = 0


def _big(value: int, first: int = 0) -> bytes:
    pieces = [value & 63]
    while value := value >> 6:
        pieces.append(value & 63 | 64)
    pieces[-1] |= first
    return bytes(reversed(pieces))


def _little(value: int) -> bytes:
    pieces = bytearray()
    while value >= 64:
        pieces.append(value & 63 | 64)
        value >>= 6
    pieces.append(value)
    return bytes(pieces)


def _signed(value: int) -> bytes:
    return _little(-value << 1 | 1 if value < 0 else value << 1)


def _line_table(line: int, stretches: Iterable[tuple[Place, int]]) -> bytes:
    table = bytearray()
    for place, length in stretches:
        for part in range(0, length, 8):
            units = min(8, length - part)
            table += _entry(place, line, units)
            line = line if place[0] is None else place[0]
    return bytes(table)


def _entry(place: Place, before: int, units: int) -> bytes:
    line, end_line, column, end_column = place
    if line is None:
        return bytes((128 | 15 << 3 | units - 1,))
    if column is None or end_column is None or end_line is None:
        return bytes((128 | 13 << 3 | units - 1,)) + _signed(line - before)
    ends = _little(end_line - line) + _little(column + 1) + _little(end_column + 1)
    return bytes((128 | 14 << 3 | units - 1,)) + _signed(line - before) + ends
