"""Keyframes: the machine's state every so often, so that no step is far from a known one.

What there can be much of (tensors, storages, nodes, names, blocks) is kept in columns, as events are; the rest is
one small record.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any

import msgspec
import zstandard

from stridescope.engine.events import Wire
from stridescope.engine.events.bundles import INLINE
from stridescope.engine.recording.allocator_state import (
    AllocatorState,
    BlockState,
    PendingEvent,
    RequestState,
    SegmentState,
)
from stridescope.engine.recording.columns import (
    Batch,
    DamagedBatch,
    Field,
    Kind,
    Schema,
    as_tuples,
    decode_kinds,
    decompress,
    encode,
    kind_of,
)
from stridescope.engine.recording.content import Blob, Content
from stridescope.engine.recording.machine import Extra, Machine, extra_of, machine_from
from stridescope.engine.recording.model import (
    BackwardState,
    Frame,
    ModulePart,
    ModuleState,
    Name,
    NodeState,
    OpState,
    Saved,
    SentGradient,
    Span,
    State,
    StorageState,
    TensorState,
)
from stridescope.engine.recording.state import advance

# A keyframe costs space and time by what is alive, the way from it by the events since: the more is alive, the
# rarer they are.
_EVENTS_APART = 1024
_EVENTS_PER_LIVE = 2
_LOOK_EVERY = 128
_LARGEST = 1 << 30

Put = Callable[[bytes], bytes]
Load = Callable[[bytes], bytes]


def is_due(machine: Machine, last: int) -> bool:
    """Whether a keyframe should follow the one at step ``last`` here."""
    return machine.step - last >= max(_EVENTS_APART, _EVENTS_PER_LIVE * alive(machine))


def alive(machine: Machine) -> int:
    """Return how much a machine holds: a copy of it costs time and space by that."""
    shelves = (machine.tensors, machine.storages, machine.nodes, machine.modules, machine.frames)
    return sum(len(shelf.rows) for shelf in shelves) + len(machine.allocator.blocks)


# ---- the columns -------------------------------------------------------------------------------------------------


def _part(owner: str, record: type[Any]) -> Kind:
    """Describe records that belong to another, whose id comes first."""
    return Kind(record.__name__, (Field(owner, "int"), *kind_of(record).fields))


_TENSORS, _STORAGES, _NODES, _SAVED, _FRAMES, _NAMES, _SEGMENTS, _BLOCKS, _SENT, _MODULES, _PARTS = range(11)
_NODE_FIELDS = tuple(field for field in kind_of(NodeState).fields if field.name not in ("edges", "saved"))
KINDS = (
    kind_of(TensorState),
    kind_of(StorageState),
    Kind("NodeState", (Field("next_nodes", "ints"), Field("next_inputs", "ints"), *_NODE_FIELDS)),
    _part("node", Saved),
    Kind("Frame", kind_of(Frame).fields[:-1]),
    _part("frame", Name),
    kind_of(SegmentState),
    kind_of(BlockState),
    kind_of(SentGradient),
    Kind("ModuleState", tuple(field for field in kind_of(ModuleState).fields if field.name != "parts")),
    _part("module", ModulePart),
)
"""The kinds of rows in a keyframe; their description in ``meta`` tells whether this version can read them."""


def _values_of(kind: Kind, skip: int = 0) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*(field.name for field in kind.fields[skip:]))


_VALUES = [_values_of(kind) for kind in (KINDS[_TENSORS], KINDS[_STORAGES])]
_NODE, _OF_SAVED = _values_of(KINDS[_NODES], 2), _values_of(KINDS[_SAVED], 1)
_FRAME, _NAME = _values_of(KINDS[_FRAMES]), _values_of(KINDS[_NAMES], 1)
_SEGMENT, _BLOCK, _SENT_GRADIENT, _MODULE = map(_values_of, KINDS[_SEGMENTS:_PARTS])
_PART = _values_of(KINDS[_PARTS], 1)


def _rows(state: State, keep: Callable[[Content], Any]) -> Iterator[Wire]:
    for tensor in state.tensors.values():
        yield _TENSORS, *_VALUES[_TENSORS](tensor)
    for storage in state.storages.values():
        *values, content, summary = _VALUES[_STORAGES](storage)
        yield _STORAGES, *values, content and keep(content), summary and tuple(summary.items())
    for node in state.nodes.values():
        yield _NODES, tuple(to for to, _ in node.edges), tuple(at for _, at in node.edges), *_NODE(node)
        for saved in node.saved:
            yield _SAVED, node.id, *_OF_SAVED(saved)
    for frame in state.frames:
        yield _FRAMES, *_FRAME(frame)
        for name in frame.names.values():
            yield _NAMES, frame.id, *_NAME(name)
    for segment in state.allocator.segments.values():
        yield _SEGMENTS, *_SEGMENT(segment)
    for block in state.allocator.blocks.values():
        yield _BLOCKS, *_BLOCK(block)
    for sent in state.backward.sent if state.backward else ():
        yield _SENT, *_SENT_GRADIENT(sent)
    for module in state.modules.values():
        yield _MODULES, *_MODULE(module)
        for part in module.parts.values():
            yield _PARTS, module.id, *_PART(part)


class _Rest(msgspec.Struct, array_like=True):
    """What a machine holds little of."""

    step: int
    line: int
    source: int
    status: int | None
    error: tuple[str, str, Span] | None
    ops: list[OpState]
    op: OpState | None
    backward: BackwardState | None
    pending: list[PendingEvent]
    statistics: dict[str, int]
    request: RequestState | None
    extra: Extra
    forwards: tuple[int, ...]
    here: int = 0


def _rest(state: State, extra: Extra) -> _Rest:
    backward, allocator = state.backward, state.allocator
    if backward is not None:
        backward = BackwardState(*attrgetter(*BackwardState.__slots__)(backward))
        backward.sent = []
    return _Rest(
        state.step, state.line, state.source, state.status, state.error, state.ops, state.op, backward,
        allocator.pending, allocator.statistics, allocator.request, extra, state.forwards, state.here,
    )  # fmt: skip


def encode_machine(machine: Machine, put: Put) -> bytes | None:
    """Return the keyframe of a machine; ``put`` keeps bytes and returns their key.

    None where a text or number of the state has no portable form: the way is then folded from an earlier keyframe.
    """

    def keep(content: Content) -> Any:
        if content.key is not None:
            return content.key, content.nbytes
        values = content.read()
        return values if len(values) <= INLINE else (put(values), len(values))

    state = machine.peek()
    try:
        rest = msgspec.msgpack.encode(_rest(state, extra_of(machine)))
    except (OverflowError, UnicodeEncodeError):
        return None
    rows = encode(list(_rows(state, keep)), lambda values: None, KINDS)
    return zstandard.ZstdCompressor(level=3).compress(msgspec.msgpack.encode((rest, rows.kinds, rows.body)))


# ---- back to a machine -------------------------------------------------------------------------------------------

_unpack_rest = msgspec.msgpack.Decoder(_Rest).decode
_SCHEMA = Schema(KINDS, KINDS)


def decode_machine(data: bytes, load: Load) -> Machine:
    """Undo :func:`encode_machine`; ``load`` reads the bytes of a key. Raises :class:`DamagedBatch`."""
    try:
        packed, kinds, body = msgspec.msgpack.decode(decompress(data, _LARGEST), type=tuple[bytes, bytes, bytes])
        rows = Batch(0, decode_kinds(kinds), body, _SCHEMA, lambda key, nbytes: b"").by_code() if body else {}
        rest = _unpack_rest(packed)
        return machine_from(_state(rest, rows, load), rest.extra)
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError) as error:
        raise DamagedBatch(f"a keyframe cannot be read ({error})") from error


def _state(rest: _Rest, rows: dict[int, list[Wire]], load: Load) -> State:
    for op in (*rest.ops, rest.op, rest.extra.last_op):
        if op is not None:
            op.arguments = as_tuples(list(op.arguments))  # "any" arrives as lists
    if rest.backward is not None:
        rest.backward.sent = [SentGradient(*row[1:]) for row in rows.get(_SENT, ())]
    return State(
        step=rest.step,
        frames=_frames(rows),
        tensors={row[1]: TensorState(*row[1:]) for row in rows.get(_TENSORS, ())},
        storages={row[1]: _storage(row, load) for row in rows.get(_STORAGES, ())},
        nodes=_nodes(rows),
        backward=rest.backward,
        op=rest.op,
        allocator=_allocator(rest, rows),
        line=rest.line,
        source=rest.source,
        status=rest.status,
        error=rest.error,
        ops=rest.ops,
        modules=_modules(rows),
        forwards=rest.forwards,
        here=rest.here,
    )


def _frames(rows: dict[int, list[Wire]]) -> list[Frame]:
    frames = {row[1]: _frame(*row[1:]) for row in rows.get(_FRAMES, ())}
    for _, frame, name, *values in rows.get(_NAMES, ()):
        frames[frame].names[name] = Name(name, *values)
    return list(frames.values())


def _frame(id: int, parent: int, source: int, function: str, line: int) -> Frame:
    return Frame(id, parent, source, function, line, {})


def _nodes(rows: dict[int, list[Wire]]) -> dict[int, NodeState]:
    nodes = {}
    for _, next_nodes, next_inputs, id, name, sequence_nr, *values in rows.get(_NODES, ()):
        edges = tuple(zip(next_nodes, next_inputs, strict=True))
        variable, born, op, module, *phase = values
        nodes[id] = NodeState(id, name, sequence_nr, edges, variable, born, op, module, [], *phase)
    for row in rows.get(_SAVED, ()):
        nodes[row[1]].saved.append(Saved(*row[2:]))
    return nodes


def _modules(rows: dict[int, list[Wire]]) -> dict[int, ModuleState]:
    modules = {}
    for _, id, kind, training, born, *where in rows.get(_MODULES, ()):
        modules[id] = ModuleState(id, kind, training, born, {}, *where)
    for _, module, name, *values in rows.get(_PARTS, ()):
        modules[module].parts[name] = ModulePart(name, *values)
    return modules


def _storage(row: Wire, load: Load) -> StorageState:
    _, id, nbytes, device, address, born, written, kept, summary = row
    content = None
    if isinstance(kept, bytes):
        content = Content(kept, len(kept))
    elif kept is not None:
        key, length = kept
        content = Content(Blob(key, length, load), length)
    known = None if summary is None else dict(summary)
    return StorageState(id, nbytes, device, address, born, written, content, known)


def _allocator(rest: _Rest, rows: dict[int, list[Wire]]) -> AllocatorState:
    segments = {row[2]: SegmentState(*row[1:]) for row in rows.get(_SEGMENTS, ())}
    blocks = {row[1]: BlockState(*row[1:]) for row in rows.get(_BLOCKS, ())}
    return AllocatorState(segments, blocks, rest.pending, rest.statistics, rest.request)


def walk(machine: Machine, wires: Iterable[Wire]) -> Iterator[None]:
    """Move a machine on by these events, and yield wherever a keyframe is due."""
    last, left = machine.step, iter(wires)
    while piece := list(itertools.islice(left, _LOOK_EVERY)):
        advance(machine, piece)
        if is_due(machine, last):
            last = machine.step
            yield


def store(database: sqlite3.Connection, machine: Machine, put: Put) -> None:
    """Add a keyframe of this machine to a recording."""
    data = encode_machine(machine, put)
    if data is not None:
        database.execute("INSERT OR REPLACE INTO keyframe VALUES (?, ?)", (machine.step, data))
