"""Variables and calls as data: the names of each frame, innermost first, and what is inside them as far as opened."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping

from stridescope.app.moment import Moment
from stridescope.app.panels.editor_model import describe, file_name
from stridescope.app.text import tr
from stridescope.app.values import list_text
from stridescope.engine.recording.model import Frame, Name, State
from stridescope.engine.worker.protocol import PARTS_RECORDED, Part

MOST_FRAMES = 100  # whose names are shown, beside the outermost
AT_ONCE = 100  # parts that are asked for, and shown, together
_INSIDE = re.compile(r"[\[.]")  # what stands between a name and the path to a tensor inside
_OPENABLE = re.compile(r"[\[({]|<(?!module |function |class |built)|\w+\(")


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a value is: a name of a frame, and the numbers of the parts that lead further in.

    With a ``count`` it stands for so many of the value's parts, from ``first`` on.
    """

    frame: int
    name: str
    path: tuple[int, ...] = ()
    first: int = 0
    count: int = 0

    @property
    def asks(self) -> bool:
        """Whether its own parts are shown when it is opened; longer stretches open into shorter ones."""
        return self.count <= AT_ONCE


@dataclasses.dataclass(frozen=True)
class Inside:
    """What the worker told of the parts at a place: as many as are shown at once, and how many the value has."""

    parts: tuple[Part, ...]
    total: int


@dataclasses.dataclass(frozen=True)
class Variable:
    """A row: a frame's title (``name`` empty), one of its names, a part of a value, or a stretch of parts.

    ``opened`` is None where there is nothing to open.
    """

    frame: int
    name: str
    text: str
    tensor: int = 0
    storage: int = 0
    depth: int = 0
    place: Place | None = None
    opened: bool | None = None
    facts: tuple[str, str, str] = ("", "", "")  # strides, device, version

    @property
    def quiet(self) -> bool:
        """Whether it says where values are rather than what they are."""
        return self.name == "…" or (self.place is not None and self.place.count > 0)


def variables(
    moment: Moment, opened: Collection[Place] = (), insides: Mapping[Place, Inside] | None = None
) -> list[Variable]:
    """Return the rows of all frames, each frame under its title, the innermost first, those that wait at the end.

    ``insides`` is what the worker told of opened places at the head; without it, as in the past, what is recorded of
    the tensors inside stands in its place.
    """
    rows: list[Variable] = []
    frames = moment.state.stack
    between = max(0, len(frames) - 1 - MOST_FRAMES)  # of a deep recursion
    for frame in [*reversed(frames[1 + between :]), *frames[:1]]:
        if between and frame is frames[0]:
            rows.append(Variable(frame.id, "…", tr("{n} more calls", n=between)))
        if len(moment.state.frames) > 1:
            rows.append(Variable(frame.id, "", title(frame)))
        rows += _names_of(moment, frame, opened, insides)
    for frame in waiting(moment.state)[:MOST_FRAMES]:
        rows.append(Variable(frame.id, "", tr("{call} elsewhere", call=title(frame))))
        rows += _names_of(moment, frame, opened, None)
    return rows


def waiting(state: State) -> list[Frame]:
    """Return the calls that do not run here: generators and coroutines that wait, and those of other threads."""
    here = {frame.id for frame in state.stack}
    return [frame for frame in state.frames if frame.id not in here]


def _names_of(
    moment: Moment, frame: Frame, opened: Collection[Place], insides: Mapping[Place, Inside] | None
) -> Iterator[Variable]:
    for name in frame.names:
        if not _INSIDE.search(name):
            yield from _named(moment, frame, name, opened, insides)


def title(frame: Frame) -> str:
    """Return ``forward()`` for a function, the script for its top level."""
    return tr("module") if frame.function == "<module>" else f"{frame.function}()"


def _named(
    moment: Moment, frame: Frame, key: str, opened: Collection[Place], insides: Mapping[Place, Inside] | None
) -> Iterator[Variable]:
    name, place = frame.names[key], Place(frame.id, key)
    held = _held(moment.state, frame, key)
    recorded = [*_module_parts(moment.state, name.module), *held]
    openable = bool(recorded) or (insides is not None and not name.tensor and bool(_OPENABLE.match(name.text)))
    row = _row(moment, frame, key, name.text, name.tensor, 0)
    yield dataclasses.replace(row, place=place, opened=place in opened if openable else None)
    if not openable or place not in opened:
        return
    if insides is not None:
        yield from _parts(moment, frame, place, opened, insides, 1)
        return
    yield from _past(moment, frame, place, recorded, opened, 1)
    if len(held) >= PARTS_RECORDED:
        yield Variable(frame.id, "…", tr("only the first {n} tensors inside are recorded", n=PARTS_RECORDED), depth=1)


def _held(state: State, frame: Frame, key: str) -> list[Name]:
    """Return the tensors and modules that a value was seen to hold, with the steps that lead to them."""
    inner = [name for name in frame.names.values() if name.name.startswith((f"{key}[", f"{key}."))]
    return [_step(state, name.name.removeprefix(key), name.tensor, name.module) for name in inner]


def _module_parts(state: State, number: int) -> list[Name]:
    """Return the parts of a module likewise."""
    module = state.modules.get(number)
    parts = module.parts.values() if module is not None else ()
    return [_step(state, f".{part.name}", *((0, part.id) if part.role == "module" else (part.id, 0))) for part in parts]


def _step(state: State, step: str, tensor: int, module: int) -> Name:
    return Name(step, tensor, f"<{state.modules[module].kind}>" if module in state.modules else "", module)


def _past(
    moment: Moment, frame: Frame, place: Place, recorded: list[Name], opened: Collection[Place], depth: int
) -> Iterator[Variable]:
    """Yield what is recorded inside a value; a module opens further."""
    for number, name in enumerate(recorded):
        further = Place(place.frame, place.name, (*place.path, number))
        inside = _module_parts(moment.state, name.module)
        row = _row(moment, frame, name.name, name.text, name.tensor, depth)
        yield dataclasses.replace(row, place=further, opened=further in opened if inside else None)
        if inside and further in opened:
            yield from _past(moment, frame, further, inside, opened, depth + 1)


def _parts(
    moment: Moment,
    frame: Frame,
    place: Place,
    opened: Collection[Place],
    insides: Mapping[Place, Inside],
    depth: int,
) -> Iterator[Variable]:
    inside = insides.get(place)
    if inside is None:
        yield Variable(frame.id, "…", tr("asking the script"), depth=depth)
        return
    for number, part in enumerate(inside.parts, place.first):
        further = Place(place.frame, place.name, (*place.path, number))
        row = _row(moment, frame, part.step, part.text, part.tensor, depth)
        yield dataclasses.replace(row, place=further, opened=further in opened if part.parts else None)
        if part.parts and further in opened:
            yield from _parts(moment, frame, further, opened, insides, depth + 1)
    if not place.count:
        yield from _stretches(moment, frame, place, (len(inside.parts), inside.total), opened, insides, depth)


def _stretches(
    moment: Moment,
    frame: Frame,
    place: Place,
    span: tuple[int, int],
    opened: Collection[Place],
    insides: Mapping[Place, Inside],
    depth: int,
) -> Iterator[Variable]:
    """Yield rows for the parts from ``span[0]`` to before ``span[1]``, at most a hundred, each for a round number."""
    size = AT_ONCE
    while span[1] - span[0] > size * AT_ONCE:
        size *= 10
    for start in range(span[0] - span[0] % size, span[1], size):
        first, end = max(start, span[0]), min(start + size, span[1])
        if end <= first:
            continue
        stretch = Place(place.frame, place.name, place.path, first, end - first)
        name = f"{first} … {end - 1}"
        yield Variable(frame.id, name, "", depth=depth, place=stretch, opened=stretch in opened)
        if stretch in opened and stretch.asks:
            yield from _parts(moment, frame, stretch, opened, insides, depth + 1)
        elif stretch in opened:
            yield from _stretches(moment, frame, place, (first, end), opened, insides, depth + 1)


def _row(moment: Moment, frame: Frame, name: str, text: str, number: int, depth: int) -> Variable:
    state = moment.state
    tensor = state.tensors.get(number)
    if tensor is None:
        return Variable(frame.id, name, text, depth=depth)
    storage = state.storages.get(tensor.storage)
    facts = (list_text(tensor.strides), storage.device if storage else "", str(tensor.version))
    return Variable(frame.id, name, describe(state, tensor, frame), tensor.id, tensor.storage, depth, facts=facts)


@dataclasses.dataclass(frozen=True)
class Call:
    """A frame of the call stack."""

    frame: int
    function: str
    place: str


def calls(moment: Moment) -> list[Call]:
    """Return the call stack, innermost first."""
    found = []
    for frame in reversed(moment.state.stack):
        source = moment.recording.sources.get(frame.source)
        place = f"{file_name(source.path)}:{frame.line}" if source else str(frame.line)
        found.append(Call(frame.id, title(frame), place))
    return found
