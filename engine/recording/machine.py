"""The machine that events move: what :class:`State` shows, in a form that can be changed cheaply.

States that were handed out never change. The machine shares its records with them and copies a record before it
changes it for the first time afterwards, so a snapshot costs the copy of a few dicts, however much is alive.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Generic, TypeVar

from stridescope.engine.recording.allocator_state import AllocatorState, BlockState, RequestState
from stridescope.engine.recording.model import (
    BackwardState,
    Frame,
    ModuleState,
    NodeState,
    OpState,
    Span,
    State,
    StorageState,
    TensorState,
)

Record = TypeVar("Record")


class Shelf(Generic[Record]):
    """Records by id, copied before their first change after they were shared."""

    __slots__ = ("_copied", "_mine", "rows")

    def __init__(self, copied: Callable[[Record], Record], rows: dict[int, Record] | None = None) -> None:
        self._copied, self.rows = copied, rows or {}
        self._mine: set[int] = set(self.rows)

    def __contains__(self, key: int) -> bool:
        return key in self.rows

    def __iter__(self) -> Iterator[Record]:
        return iter(self.rows.values())

    def get(self, key: int) -> Record | None:
        """Return a record to look at, not to change."""
        return self.rows.get(key)

    def edit(self, key: int) -> Record | None:
        """Return a record that may be changed; None where nothing has this id."""
        row = self.rows.get(key)
        if row is not None and key not in self._mine:
            row = self.rows[key] = self._copied(row)
            self._mine.add(key)
        return row

    def put(self, key: int, row: Record) -> None:
        """Add a new record."""
        self.rows[key] = row
        self._mine.add(key)

    def pop(self, key: int) -> Record | None:
        """Remove a record."""
        self._mine.discard(key)
        return self.rows.pop(key, None)

    def share(self) -> dict[int, Record]:
        """Hand out all records as they are now."""
        self._mine = set()
        return dict(self.rows)

    def twin(self) -> Shelf[Record]:
        """Return an equal shelf; from now on neither changes what both hold."""
        other = Shelf(self._copied, self.share())
        other._mine = set()
        return other


def _copier(record: type[Record]) -> Callable[[Record], Record]:
    names = [field.name for field in dataclasses.fields(record)]  # type: ignore[arg-type]
    fields: Callable[[Record], tuple[Any, ...]] = attrgetter(*names)
    return lambda row: record(*fields(row))


_op, _backward, _request, _block = map(_copier, (OpState, BackwardState, RequestState, BlockState))  # type: ignore[arg-type]


def _copied_node(row: NodeState) -> NodeState:
    row = copy.copy(row)
    row.saved = list(row.saved)
    return row


def _copied_frame(row: Frame) -> Frame:
    row = copy.copy(row)
    row.names = dict(row.names)
    return row


def _copied_module(row: ModuleState) -> ModuleState:
    row = copy.copy(row)
    row.parts = dict(row.parts)
    return row


def _copied_backward(row: BackwardState) -> BackwardState:
    row = _backward(row)
    row.ready, row.sent = list(row.ready), list(row.sent)
    return row


def _copied_allocator(state: AllocatorState) -> AllocatorState:
    blocks = {address: _block(block) for address, block in state.blocks.items()}
    request = state.request
    if request is not None:
        request = _request(request)
        request.considered, request.notes = list(request.considered), list(request.notes)
    return AllocatorState(dict(state.segments), blocks, list(state.pending), dict(state.statistics), request)


class Machine:
    """Everything that is folded from the events up to ``step``."""

    def __init__(self) -> None:
        self.step = -1
        self.frames: Shelf[Frame] = Shelf(_copied_frame)
        self.tensors: Shelf[TensorState] = Shelf(copy.copy)
        self.storages: Shelf[StorageState] = Shelf(copy.copy)
        self.nodes: Shelf[NodeState] = Shelf(_copied_node)
        self.modules: Shelf[ModuleState] = Shelf(_copied_module)
        self.forwards: tuple[int, ...] = ()
        self.ops: list[OpState] = []
        self.last_op: OpState | None = None
        self.backward: BackwardState | None = None
        self.outer: list[BackwardState] = []
        self.allocator = AllocatorState()
        self.line = self.source = self.here = 0
        self.status: int | None = None
        self.error: tuple[str, str, Span] | None = None
        # What is known of version counters outlives their tensors: a saved tensor may come back.
        self.versions: dict[int, int] = {}
        self.siblings: Shelf[dict[int, None]] = Shelf(dict)  # the tensors of each version counter
        self.bumped: dict[int, tuple[int, ...]] = {}
        # What stands for a tensor or a module: (frame, name); what has it as a part: (module, name).
        self.named: Index = {}
        self.modules_named: Index = {}
        self.owners: Index = {}
        self.parents: Index = {}
        self._backward_shared = self._allocator_shared = False

    @property
    def op(self) -> str:
        """The name of the innermost op that runs, or an empty text."""
        return self.ops[-1].op if self.ops else ""

    def edit_backward(self) -> BackwardState | None:
        """Return the current backward pass to be changed."""
        if self._backward_shared and self.backward is not None:
            self.backward, self._backward_shared = _copied_backward(self.backward), False
        return self.backward

    def begin_backward(self, backward: BackwardState) -> None:
        """Make a new backward pass the current one."""
        self.backward, self._backward_shared = backward, False

    def resume_backward(self) -> None:
        """Go back to the backward pass whose hook ran the one that ended."""
        if self.outer:
            self.backward, self._backward_shared = self.outer.pop(), True

    def edit_allocator(self) -> AllocatorState:
        """Return the allocator to be changed."""
        if self._allocator_shared:
            self.allocator, self._allocator_shared = _copied_allocator(self.allocator), False
        return self.allocator

    def join_siblings(self, tensor: int, counter: int) -> None:
        """Let a tensor be one of those whose version is this counter's."""
        if (siblings := self.siblings.edit(counter)) is None:
            self.siblings.put(counter, {tensor: None})
        else:
            siblings[tensor] = None

    def leave_siblings(self, tensor: int, counter: int) -> None:
        """Let a tensor be one of them no more."""
        if (siblings := self.siblings.edit(counter)) is not None:
            siblings.pop(tensor, None)
            if not siblings:
                self.siblings.pop(counter)

    def rename(self, tensor: int) -> None:
        """Give a tensor the names that now stand for it: variables, innermost frame first, paths in modules, others."""
        row = self.tensors.edit(tensor)
        if row is not None:
            names = [name for _, name in sorted(self.named.get(tensor, ()), key=_innermost_first)]
            if tensor in self.owners:
                inside = [name for name in names if not name.isidentifier()]  # a list of parameters and the like
                names = [name for name in names if name not in inside] + self._paths(tensor) + inside
            row.names = tuple(dict.fromkeys(names))

    def _paths(self, tensor: int) -> list[str]:
        owners = ((self.modules.get(module), name) for module, name in self.owners[tensor])
        found = ((at.frame, at.depth, f"{at.path}.{name}") for at, name in owners if at is not None and at.path)
        return [path for _, _, path in sorted(found)]

    def snapshot(self) -> State:
        """Hand out the state at this step."""
        self._backward_shared = self._allocator_shared = True
        self.ops = list(map(_op, running := self.ops))
        shelves = (self.frames.share(), self.tensors.share(), self.storages.share(), self.nodes.share())
        return self._state(*shelves, running, self.modules.share())

    def peek(self) -> State:
        """Return the state at this step for a look: it changes with the machine."""
        shelves = (self.frames.rows, self.tensors.rows, self.storages.rows, self.nodes.rows)
        return self._state(*shelves, self.ops, self.modules.rows)

    def _state(
        self,
        frames: dict[int, Frame],
        tensors: dict[int, TensorState],
        storages: dict[int, StorageState],
        nodes: dict[int, NodeState],
        ops: list[OpState],
        modules: dict[int, ModuleState],
    ) -> State:
        return State(
            step=self.step,
            frames=list(frames.values()),
            tensors=tensors,
            storages=storages,
            nodes=nodes,
            backward=self.backward,
            op=ops[-1] if ops else self.last_op,
            allocator=self.allocator,
            line=self.line,
            source=self.source,
            status=self.status,
            error=self.error,
            ops=ops,
            modules=modules,
            forwards=self.forwards,
            here=self.here,
        )

    def twin(self) -> Machine:
        """Return a machine in the same state that goes its own way."""
        other = Machine.__new__(Machine)
        self._backward_shared = self._allocator_shared = True
        other.__dict__.update(self.__dict__)
        for shelf in ("frames", "tensors", "storages", "nodes", "modules", "siblings"):
            setattr(other, shelf, getattr(self, shelf).twin())
        for index in ("versions", "bumped", "named", "modules_named", "owners", "parents"):
            setattr(other, index, dict(getattr(self, index)))
        other.ops, other.outer = list(map(_op, self.ops)), list(self.outer)
        return other


def _innermost_first(bound: tuple[int, str]) -> int:
    return -bound[0]


@dataclasses.dataclass(slots=True)
class Extra:
    """What a machine knows beyond its state: kept in keyframes beside it."""

    versions: dict[int, int]
    bumped: dict[int, tuple[int, ...]]
    outer: list[BackwardState]
    last_op: OpState | None


def extra_of(machine: Machine) -> Extra:
    """Return what a snapshot of this machine does not hold."""
    return Extra(machine.versions, machine.bumped, machine.outer, machine.last_op)


def machine_from(state: State, extra: Extra) -> Machine:
    """Build the machine whose snapshot is ``state``. Both are taken over: the caller keeps neither."""
    machine = Machine()
    machine.step, machine.line, machine.source, machine.here = state.step, state.line, state.source, state.here
    machine.status, machine.error = state.status, state.error
    machine.frames = Shelf(_copied_frame, {frame.id: frame for frame in state.frames})
    machine.tensors = Shelf(copy.copy, state.tensors)
    machine.storages, machine.nodes = Shelf(copy.copy, state.storages), Shelf(_copied_node, state.nodes)
    machine.modules, machine.forwards = Shelf(_copied_module, state.modules), state.forwards
    machine.ops, machine.last_op = state.ops, extra.last_op
    machine.backward, machine.outer, machine.allocator = state.backward, extra.outer, state.allocator
    machine.versions, machine.bumped = extra.versions, extra.bumped
    for tensor in machine.tensors:
        machine.join_siblings(tensor.id, tensor.counter)
    for frame in machine.frames:
        for name in frame.names.values():
            index, id = (machine.modules_named, name.module) if name.module else (machine.named, name.tensor)
            if id:
                add(index, id, (frame.id, name.name))
    for module in machine.modules:
        for part in module.parts.values():
            add(machine.parents if part.role == "module" else machine.owners, part.id, (module.id, part.name))
    return machine


Index = dict[int, tuple[tuple[int, str], ...]]


def add(index: Index, id: int, entry: tuple[int, str]) -> None:
    """Add an entry to those of an id."""
    index[id] = (*index.get(id, ()), entry)


def take(index: Index, id: int, entry: tuple[int, str]) -> None:
    """Take an entry out of those of an id."""
    left = tuple(other for other in index.get(id, ()) if other != entry)
    if left:
        index[id] = left
    else:
        index.pop(id, None)
