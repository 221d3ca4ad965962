"""Bundles: several events that always come one right after the other, sent as one row.

An op call is eight events or more. Making each of them a tuple of its own, and packing each for the recording, would
take several times the call's own time. So what nothing can come between leaves the engine as one row
``(code, *fields)``; whoever needs the single events opens it, at once (the gate where the script can stop between any
two events) or when the recording is read. A bundle counts as many steps as it holds events.

A recording describes its bundles as it describes its kinds of events, so files stay readable when this list changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from stridescope.engine.events.backward import GradientSent, NodeEnded, NodeReady
from stridescope.engine.events.base import Event, Wire
from stridescope.engine.events.graph import GradFnSet, NodeMade, TensorSaved
from stridescope.engine.events.line import LineReached, NameBound
from stridescope.engine.events.op import KeysChosen, OpBegan, OpEnded
from stridescope.engine.events.tensor import StorageFreed, StorageMade, StorageWritten, TensorFreed, TensorMade

FIRST_BUNDLE = 128  # the codes from here on are bundles', those below are events'
_PLACE = "frame source line column end_line end_column"
_CALL = f"op inputs arguments {_PLACE}"
_OF_CALL = len(_CALL.split())
INLINE = 256  # bytes: values up to this length stand in the row; a recording keeps longer ones once each
MOST_SAVED = 2  # tensors that a node in a bundle can have saved

# Where a field of an event has its value: the position in the bundle's row (a negative one: a tuple of what stands
# there), or the value itself in a list.
Source = int | list[Any]
Part = tuple[int, list[Source]]


def _placed(row: Sequence[Any]) -> list[Any]:
    return [*row[:-1], *row[-1]]


def _called(row: Sequence[Any]) -> list[Any]:
    code, op, pattern, place = row[:4]
    first = len(row) - len(pattern)
    if first < 4:
        raise IndexError(f"{len(row)} fields and {len(pattern)} arguments")
    arguments = row[first:]
    inputs = tuple([value for letter, value in zip(pattern, arguments, strict=True) if letter == "t"])
    written = [f"%{value}" if letter == "t" else value for letter, value in zip(pattern, arguments, strict=True)]
    return [code, op, inputs, tuple(written), *place, *row[4:first]]


def _counted(row: Sequence[Any]) -> list[Any]:
    code, frame, name, value, *rest = row
    return [code, frame, name, repr(value), *rest]


FORMS: dict[str, Callable[[Sequence[Any]], list[Any]]] = {
    "flat": list,
    "placed": _placed,
    "called": _called,
    "counted": _counted,
}


class Bundle:
    """One kind of bundle.

    Attributes:
        parts: for each event its code and where its fields have their values.
        codes: the codes of its events.
        form: ``flat``: the row is its fields. ``placed``: the last field is a tuple, whose items are fields too.
            ``called``: the row is ``(code, op, pattern, place, *more, *arguments)``. The pattern has a letter for
            each argument, ``t`` where the number of a tensor stands; the fields are op, inputs, arguments, those of
            the place and then more. So an op's call is a single tuple, which the garbage collector soon passes over.
            ``counted``: the third field is a number (or None) where the event has its text.
    """

    def __init__(self, parts: Sequence[Part], form: str = "flat") -> None:
        """Raise KeyError for an unknown form."""
        self.parts, self.form, self._fields = parts, form, FORMS[form]
        self.codes = bytes(code for code, _ in parts)
        positions = {source for _, sources in parts for source in sources if isinstance(source, int)}
        self._width = width = 1 + max(positions)
        self._ones = [-source for source in sorted(positions) if source < 0]
        found: list[Any] = []  # what follows behind the row's own fields
        self._events = [
            itemgetter(*(_position(source, width, self._ones, found) for source in ([code], *sources)))
            for code, sources in parts
        ]
        self._constants = found

    def place(self, field: int) -> int:
        """Where in the row a field stands that is none of those of the call."""
        return field - _OF_CALL + 3 if self.form == "called" else field

    def open(self, row: Sequence[Any]) -> list[Wire]:
        """Return the single events; raises a TypeError or LookupError for a row that is none of these."""
        whole = self._fields(row)
        if len(whole) != self._width:
            raise IndexError(f"{len(whole)} fields instead of {self._width}")
        whole += [(whole[position],) for position in self._ones]
        whole += self._constants
        return [event(whole) for event in self._events]


def _position(source: Source, width: int, ones: list[int], constants: list[Any]) -> int:
    """Where an opened row has a source; a constant is added to ``constants``."""
    if isinstance(source, list):
        constants.append(tuple(source[0]) if isinstance(source[0], list) else source[0])
        return width + len(ones) + len(constants) - 1
    return source if source >= 0 else width + ones.index(-source)


def _bundle(fields: str, *parts: tuple[type[Event], dict[str, Any]], form: str = "flat") -> Bundle:
    """Say a bundle by the names of its fields; an event's fields come from those, or from what stands beside it.

    Beside an event ``{"counter": "tensor"}`` names another field of the bundle, ``{"outputs": "(tensor)"}`` is a
    tuple of one, ``{"first": [0]}`` is always 0.
    """
    position = {name: at for at, name in enumerate(fields.split(), 1)}

    def source(name: str, given: dict[str, Any]) -> Source:
        wanted = given.get(name, name)
        if isinstance(wanted, list):
            return wanted
        return -position[wanted[1:-1]] if wanted.startswith("(") else position[wanted]

    described = [(kind.code, [source(name, given) for name in kind.__annotations__]) for kind, given in parts]
    return Bundle(described, form)


USUAL_KEYS = ("AutogradCPU", "ADInplaceOrView", "CPU")
_OPENED: tuple[tuple[type[Event], dict[str, Any]], ...] = ((OpBegan, {}), (KeysChosen, {"keys": [USUAL_KEYS]}))
_ENDED: tuple[type[Event], dict[str, Any]] = (OpEnded, {"outputs": "(tensor)"})
_STORAGE = "storage nbytes address tensor sizes strides dtype requires_grad values"
_MADE: tuple[tuple[type[Event], dict[str, Any]], ...] = (
    (StorageMade, {"device": ["cpu"]}),
    (TensorMade, {"offset": [0], "base": [0], "counter": "tensor"}),
    (StorageWritten, {"first": [0]}),
)
_SAVED = "field{0} saved{0} of{0} bytes{0} version{0} output{0}"


def _saved(number: int) -> tuple[type[Event], dict[str, Any]]:
    names = _SAVED.format(number).split()
    return TensorSaved, dict(zip(("field", "tensor", "storage", "nbytes", "version", "is_output"), names, strict=True))


_NODE = "node name sequence_nr next_nodes next_inputs"
_NODE_MADE = (NodeMade, {"variable": [0]})
_JOINED = (GradFnSet, {"output_nr": [0]})

_NUMBER = "frame name text"
_NUMBERED: tuple[type[Event], dict[str, Any]] = (NameBound, {"tensor": [0]})

# Code -> bundle. The order is the wire code of a running session; recordings describe theirs.
BUNDLES: dict[int, Bundle] = dict(
    enumerate(
        (
            # An op begins, and its keys are chosen: those of tensors on the CPU, or others.
            _bundle(_CALL, *_OPENED, form="called"),
            _bundle(f"op inputs arguments keys {_PLACE}", (OpBegan, {}), (KeysChosen, {}), form="placed"),
            # A new tensor on the CPU with a small storage of its own.
            _bundle(_STORAGE, *_MADE),
            # The same as the result of an op, which ends with it.
            _bundle(f"{_STORAGE} op", *_MADE, _ENDED),
            # A view as the result of an op, which ends with it.
            _bundle(
                "tensor storage sizes strides offset dtype base counter requires_grad op", (TensorMade, {}), _ENDED
            ),
            # A tensor dies, and its storage with it.
            _bundle("tensor storage", (TensorFreed, {}), (StorageFreed, {})),
            # A result with a grad_fn: the new tensor, its node and what that saved; the op ends with it.
            *(
                _bundle(
                    " ".join([_STORAGE, _NODE, *map(_SAVED.format, range(saved)), "op"]),
                    *_MADE,
                    _NODE_MADE,
                    *map(_saved, range(saved)),
                    _JOINED,
                    _ENDED,
                )
                for saved in range(MOST_SAVED + 1)
            ),
            # A name stands for a number now; what a name stands for and the line that is reached then.
            _bundle(_NUMBER, _NUMBERED, form="counted"),
            _bundle(f"{_NUMBER} source line", _NUMBERED, (LineReached, {}), form="counted"),
            _bundle("frame name tensor text source line", (NameBound, {}), (LineReached, {})),
            # A whole call: it begins, and ends with a new tensor on the CPU with a small storage of its own.
            _bundle(
                f"{_CALL} storage nbytes address tensor sizes strides dtype values",
                *_OPENED,
                *((kind, {**given, "requires_grad": [False]}) for kind, given in _MADE),
                _ENDED,
                form="called",
            ),
            # A call of an op that is made of others begins: it passes no keys itself.
            _bundle(_CALL, (OpBegan, {}), form="called"),
            # A backward node is done, and its first gradient is the only one that its receiver waited for.
            _bundle(
                "node receiver input_nr gradient",
                (NodeEnded, {}),
                (GradientSent, {"summed": [False], "waiting": [0]}),
                (NodeReady, {"node": "receiver"}),
            ),
        ),
        FIRST_BUNDLE,
    )
)
OPENED, OPENED_ELSE, MADE, RESULT, VIEWED, GONE, TRACKED = range(
    FIRST_BUNDLE, FIRST_BUNDLE + 7
)  # TRACKED + 1, + 2: saved tensors
COUNTED, COUNTED_AT, BOUND_AT, CALLED, BEGUN, PASSED_ON = range(TRACKED + MOST_SAVED + 1, TRACKED + MOST_SAVED + 7)


def opening(emit: Callable[[Wire], object]) -> Callable[[Wire], object]:
    """Return what takes bundles and hands their single events to ``emit``."""

    def send(row: Wire) -> None:
        for event in BUNDLES[row[0]].open(row):
            emit(event)

    return send
