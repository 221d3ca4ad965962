"""Code objects that tell of themselves: a probe is put in before each line, and at the begin and end of each call.

The rewriting works on what the compiler made, not on the syntax tree: names, docstrings, positions, closures, nested
blocks and the stack stay exactly Python's own, and a traceback shows nothing of it. What can be seen is the code object
itself: its bytes, its last constants, the depth of its stack. Probes stand on their line and in no column.

A line is told where control comes from another one or goes back to its own, as ``sys.monitoring`` has it: an edge that
does neither passes the probe by.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterable
from typing import Protocol

from stridescope.engine.worker.bytecode import BACKWARD, Assembly, Handler, Instruction, Label, Place, taken_apart
from stridescope.engine.worker.positions import NO_STARTS

OP = dis.opmap
RESUME, PUSH_EXC_INFO, KW_NAMES = OP["RESUME"], OP["PUSH_EXC_INFO"], OP.get("KW_NAMES", -1)
RETURNS = frozenset(OP[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in OP)
RAISE, RERAISE = OP["RAISE_VARARGS"], OP["RERAISE"]
JUMPS = frozenset(OP[name] for name in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"))
ENDS = RETURNS | JUMPS | {RAISE, RERAISE}  # what is never followed by the next instruction
LOOPS = BACKWARD - {OP["JUMP_BACKWARD_NO_INTERRUPT"]}  # an ``await`` that waits is no loop
SKIP_IF_FALSE = OP.get("POP_JUMP_FORWARD_IF_FALSE") or OP["POP_JUMP_IF_FALSE"]
SKIP_IF_TRUE = OP.get("POP_JUMP_FORWARD_IF_TRUE") or OP["POP_JUMP_IF_TRUE"]
SKIP_IF_GIVEN = OP.get("POP_JUMP_FORWARD_IF_NOT_NONE") or OP["POP_JUMP_IF_NOT_NONE"]
ROOM = 6  # values that a probe has on the stack, at most


class Probes(Protocol):
    """Makes the probes of a code object: constants that are to be called while they are true.

    ``here`` is true where probes cannot be called, in another process. ``foreign`` are called first: they return
    something while the script itself traces or profiles.
    """

    @property
    def here(self) -> object:
        """A constant."""

    @property
    def foreign(self) -> tuple[Callable[[], object], ...]:
        """Constants."""

    def at_line(self, line: int) -> object:
        """Return what is called before a line."""

    def at_begin(self) -> object:
        """Return what is called as a call begins."""

    def at_end(self) -> object:
        """Return what is called before a call returns."""

    def at_error(self) -> object:
        """Return what is called with an exception, and where it was raised if that is known, before it is handled."""

    def at_reraising(self) -> object:
        """Return what is called with an exception that goes on to another handler, None for a ``raise``."""

    def at_unwinding(self) -> object:
        """Return what is called with the exception that ends a call, and where it was raised."""


def rewritten(code: types.CodeType, probes: Probes, inner: Iterable[types.CodeType]) -> types.CodeType:
    """Return a code object that does the same and tells of it; ``inner`` takes the place of the codes inside."""
    return _Rewriting(code, probes).run(tuple(inner))


class _Rewriting:
    """Puts the probes of one code object into place."""

    def __init__(self, code: types.CodeType, probes: Probes) -> None:
        self._code, self._probes = code, probes
        self._old = taken_apart(code)
        self._lines = _lines(self._old)
        self._begin = next(n for n, each in enumerate(self._old) if each.opcode == RESUME)
        self._new, self._consts, self._skips = Assembly(), list[object](code.co_consts), 0
        self._unwinding = Handler(("unwinding", 0), 0, True)
        self._told = self._edges()
        # Instructions that exceptions lead to: whether where these were raised is on the stack, and from which lines.
        self._handlers = {each.handler.label[1]: each.handler.lasti for each in self._old if each.handler is not None}
        self._tried: dict[int, set[int]] = {number: set() for number in self._handlers}
        for each, line in zip(self._old, self._lines, strict=True):
            if each.handler is not None:
                self._tried[each.handler.label[1]].add(line)
        self._here = self._const(probes.here)
        self._foreign = [self._const(each) for each in probes.foreign]
        self._nothing = self._const(None)
        self._error, self._again = self._const(probes.at_error()), self._const(probes.at_reraising())
        self._end = self._const(probes.at_end())
        self._at: dict[int, int] = {}  # the constants of the lines' probes

    def run(self, inner: tuple[types.CodeType, ...]) -> types.CodeType:
        """Return the new code object."""
        for number, each in enumerate(self._old):
            if number > self._begin:
                self._lead_to(number)
            else:
                self._new.mark(("", number))
            self._copy(number, each)
            if number == self._begin:
                first = next((n for n in range(number + 1, len(self._old)) if self._begins_line(n)), number)
                self._call(self._const(self._probes.at_begin()), self._old[first].place, each.handler)
        self._add_unwinding()
        codes = iter(inner)
        consts = tuple(next(codes) if isinstance(each, types.CodeType) else each for each in self._consts)
        return self._new.put_together(self._code, consts, ROOM)

    def _edges(self) -> dict[int, dict[int, bool]]:
        """Return for each instruction where control comes from, and whether its line is told then."""
        edges: dict[int, dict[int, bool]] = {}
        for number, each in enumerate(self._old):
            if each.opcode not in ENDS and number + 1 < len(self._old):
                edges.setdefault(number + 1, {})[number] = self._is_told(number, number + 1, False)
            if each.label is not None:
                target = each.label[1]
                edges.setdefault(target, {})[number] = self._is_told(number, target, each.opcode in LOOPS)
        return edges

    def _is_told(self, origin: int, target: int, loops: bool) -> bool:
        other = loops or self._lines[target] != self._lines[origin] or origin == self._begin
        return other and target > self._begin and self._begins_line(target)

    def _begins_line(self, number: int) -> bool:
        return bool(self._lines[number]) and self._old[number].opcode not in NO_STARTS

    def _catches_elsewhere(self, number: int) -> bool:
        """Say whether a handler begins a line for exceptions of others."""
        return self._begins_line(number) and self._tried[number] != {self._lines[number]}

    def _lead_to(self, number: int) -> None:
        """Add what comes before an instruction: for those who come from other lines, for exceptions, for the rest."""
        each, edges = self._old[number], self._told.get(number, {})
        caught = number in self._handlers and each.opcode != PUSH_EXC_INFO
        told = caught and self._catches_elsewhere(number) or any(edges.values())
        handler = each.handler or self._unwinding
        if number - 1 in edges and (caught or told and not edges[number - 1]):
            label: Label = ("told" if edges[number - 1] else "plain", number)
            self._new.add(OP["JUMP_FORWARD"], 0, self._old[number - 1].place, handler, label)
        if caught:
            self._new.mark(("", number))
            self._tell_error(number, each.place, handler)
        if told:
            self._new.mark(("told", number))
            self._tell_line(number, handler)
        self._new.mark(("plain", number))
        if not caught:
            self._new.mark(("", number))

    def _copy(self, number: int, each: Instruction) -> None:
        """Add an instruction of the old code, and what belongs to it."""
        handler = (each.handler or self._unwinding) if number > self._begin else each.handler
        if each.opcode in RETURNS and number > self._begin:
            self._call(self._end, each.place, handler)
        if each.handler is not None and (each.opcode == RERAISE or each == (RAISE, 0, *each[2:])):
            self._call(self._again, each.place, handler, (int(each.opcode == RERAISE),))
        label = None
        if each.label is not None:
            label = ("told" if self._told[each.label[1]][number] else "plain", each.label[1])
        self._new.add(each.opcode, each.argument, each.place, handler, label)
        if each.opcode == PUSH_EXC_INFO and number in self._handlers:
            after = self._old[number + 1].handler or self._unwinding
            self._tell_error(number, each.place, after)
            if self._catches_elsewhere(number):
                self._tell_line(number, after)

    def _add_unwinding(self) -> None:
        """Add what an exception meets that no handler of the code takes: it goes on as if nothing had been there.

        It stands on no line, which the script's own trace function would be told of.
        """
        place: Place = (None, None, None, None)
        self._new.mark(self._unwinding.label)
        self._call(self._const(self._probes.at_unwinding()), place, None, (1, 2))
        self._new.add(RERAISE, 1, place, None)

    def _tell_line(self, number: int, handler: Handler | None) -> None:
        line = self._lines[number]
        if line not in self._at:
            self._at[line] = self._const(self._probes.at_line(line))
        self._call(self._at[line], self._old[number].place, handler)

    def _tell_error(self, number: int, place: Place, handler: Handler | None) -> None:
        """Call with the exception and with where it was raised, where that is on the stack; PUSH_EXC_INFO adds one."""
        deep = (2 if self._old[number].opcode != PUSH_EXC_INFO else 3) if self._handlers[number] else 0
        self._call(self._error, place, handler, (1, deep))

    def _call(self, probe: int, place: Place, handler: Handler | None, stacked: tuple[int, ...] = ()) -> None:
        """Call a probe, with values so deep in the stack (0 for None); not while the script traces itself."""
        self._skips += 1
        skip = ("skip", self._skips)
        place = (place[0], place[0], None, None)

        def add(operation: int, argument: int = 0, label: Label | None = None) -> None:
            self._new.add(operation, argument, place, handler, label)

        add(OP["LOAD_CONST"], probe)
        add(SKIP_IF_FALSE, 0, skip)
        add(OP["LOAD_CONST"], self._here)
        add(SKIP_IF_TRUE, 0, skip)
        for foreign in self._foreign:
            add(OP["PUSH_NULL"])
            add(OP["LOAD_CONST"], foreign)
            _add_call(add, 0)
            add(SKIP_IF_GIVEN, 0, skip)
        add(OP["PUSH_NULL"])
        add(OP["LOAD_CONST"], probe)
        for number, depth in enumerate(stacked):
            add(*((OP["COPY"], depth + 2 + number) if depth else (OP["LOAD_CONST"], self._nothing)))
        _add_call(add, len(stacked))
        add(OP["POP_TOP"])
        self._new.mark(skip)

    def _const(self, value: object) -> int:
        self._consts.append(value)
        return len(self._consts) - 1


def _add_call(add: Callable[[int, int], None], arguments: int) -> None:
    if "PRECALL" in OP:
        add(OP["PRECALL"], arguments)
    add(OP["CALL"], arguments)


def _lines(instructions: list[Instruction]) -> list[int]:
    """Return each instruction's line, 0 for none.

    The names of keyword arguments are handed to the very next call: what stands between has the line of both.
    """
    lines = [each.place[0] or 0 for each in instructions]
    for number, each in enumerate(instructions):
        if each.opcode == KW_NAMES:
            lines[number] = lines[number + 1]
    return lines
