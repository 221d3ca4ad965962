"""Made-up runs: events with any fields at all, and streams such as a real script gives."""

from __future__ import annotations

import copy
import dataclasses
import random
from typing import Any

from hypothesis import strategies as st

from stridescope.engine.events import (
    EVENTS,
    BackwardBegan,
    BackwardEnded,
    BlockAllocated,
    BlockAwaitsEvent,
    BlockFreed,
    BlockMerged,
    BlockRequested,
    BlockSplit,
    BufferSet,
    ChildSet,
    DependenciesCounted,
    Event,
    ForwardBegan,
    ForwardEnded,
    FrameEntered,
    FrameLeft,
    GradAccumulated,
    GradFnSet,
    GradientSent,
    KeysChosen,
    LineReached,
    ModeSet,
    ModuleFreed,
    ModuleMade,
    ModuleNamed,
    NameBound,
    NameUnbound,
    NodeBegan,
    NodeEnded,
    NodeFreed,
    NodeMade,
    NodeReady,
    OpBegan,
    OpEnded,
    OutputWritten,
    ParameterSet,
    PartRemoved,
    SavedFreed,
    SegmentAllocated,
    StorageFreed,
    StorageMade,
    StorageSummarised,
    StorageWritten,
    TensorFreed,
    TensorMade,
    TensorSaved,
    VersionBumped,
)
from stridescope.engine.recording.model import State

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 50)
TEXTS = st.text(max_size=20) | st.sampled_from(["aten::mul", "x", "\ud800", "z" * 300])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.binary(max_size=20)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)

FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "int": INTEGERS,
    "bool": st.booleans(),
    "float": st.floats(),
    "str": TEXTS,
    "bytes": st.binary(max_size=40) | st.binary(min_size=257, max_size=400),
    "tuple[int, ...]": st.lists(INTEGERS, max_size=4).map(tuple),
    "tuple[str, ...]": st.lists(TEXTS, max_size=3).map(tuple),
    "tuple[Any, ...]": st.lists(VALUES, max_size=3).map(tuple),
}


def any_event(event: type[Event]) -> st.SearchStrategy[Event]:
    """Events of one class with fields of their declared types."""
    return st.builds(event, **{field.name: FIELDS[str(field.type)] for field in dataclasses.fields(event)})  # type: ignore[arg-type]


ANY_EVENTS = st.lists(st.one_of([any_event(event) for event in EVENTS]), max_size=40)


def exactly(value: Any) -> Any:
    """A form in which 1, 1.0 and True differ and NaN equals itself."""
    return tuple(map(exactly, value)) if isinstance(value, tuple) else (type(value), repr(value))


def seen(state: State) -> str:
    """Everything a state shows, the bytes of storages included, as one comparable text."""
    values = {storage.id: storage.values for storage in state.storages.values()}
    shown = copy.copy(state)
    shown.storages = {
        key: (row.id, row.nbytes, row.device, row.address, row.born, row.written, row.summary)  # type: ignore[misc]
        for key, row in state.storages.items()
    }
    return repr((shown, values))


class Run:
    """Makes up a training loop: every event is one that the engine would give, from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.events: list[Event] = [FrameEntered(1, 0, 1, "<module>", 1)]
        self.next = 1
        self.live: list[tuple[int, int, int]] = []
        self.modules: list[int] = []
        self.backwards = 0
        self.blocks: dict[int, int] = {}
        self.address = 1 << 30

    def of_length(self, count: int) -> list[Event]:
        """Go on until there are ``count`` events."""
        actions = [
            self.line,
            self.op,
            self.op,
            self.op,
            self.write,
            self.call,
            self.name,
            self.free,
            self.block,
            self.module,
        ]
        while len(self.events) < count:
            self.random.choice(actions)()
            if self.random.random() < 0.01:
                self.backward()
        return self.events[:count]

    def id(self) -> int:
        self.next += 1
        return self.next

    def pick(self) -> tuple[int, int, int]:
        return self.random.choice(self.live or [(0, 0, 0)])

    def line(self) -> None:
        self.events.append(LineReached(1, 1, self.random.randrange(1, 40)))

    def op(self) -> None:
        name = self.random.choice(["aten::mul", "aten::add", "aten::view", "aten::tanh"])
        tensor, storage, node = self.id(), self.id(), self.id()
        (left, kept, before), (right, *_) = self.pick(), self.pick()
        arguments = self.random.choice([(), (1,), (True,), (1.0, (2, None)), ("mean",)])
        self.events += [
            OpBegan(name, (left, right), arguments, 1, 1, 3, 4, 3, 9),
            KeysChosen(("Autograd", "CPU")),
            StorageMade(storage, 24, "cpu", 4096 + 64 * storage),
            TensorMade(tensor, storage, (2, 3), (3, 1), 0, "float32", 0, tensor, False),
            StorageWritten(storage, 0, self.random.randbytes(24)),
            NodeMade(node, "MulBackward0", node, (before, 0), (0, 0), 0),
            TensorSaved(node, "self", left, kept, 24, 0, False),
            GradFnSet(tensor, node, 0),
            OpEnded(name, (tensor,)),
        ]
        self.live.append((tensor, storage, node))

    def write(self) -> None:
        tensor, storage, _ = self.pick()
        if storage:
            first = self.random.randrange(20)
            self.events += [
                VersionBumped(tensor, self.random.randrange(1, 9)),
                self.random.choice(
                    [
                        StorageWritten(storage, first, self.random.randbytes(4)),
                        StorageSummarised(storage, "float32", -1.0, 2.0, 0.5, 0, 6, (1, 2, 3)),
                    ]
                ),
            ]

    def call(self) -> None:
        frame = self.id()
        self.events += [
            FrameEntered(frame, 1, 1, "forward", 7),
            NameBound(frame, "inner", self.pick()[0], "tensor"),
            LineReached(frame, 1, 8),
            FrameLeft(frame),
        ]

    def name(self) -> None:
        name = self.random.choice("abcxyz")
        self.events.append(NameBound(1, name, self.pick()[0], f"value {self.random.randrange(5)}"))
        if self.random.random() < 0.2:
            self.events += [NameUnbound(1, name), OutputWritten(1, f"{name}\n")]

    def module(self) -> None:
        """A module joins others (perhaps itself), its parts change, its forward runs."""
        module, tensor, part = self.id(), self.pick()[0], self.random.choice(["weight", "bias", "0"])
        other = self.random.choice([*self.modules, module])
        self.modules.append(module)
        self.events += [
            ModuleMade(module, "Linear"),
            self.random.choice([ParameterSet(module, part, tensor), BufferSet(module, part, tensor)]),
            self.random.choice([ChildSet(other, "inner", module), ChildSet(module, "outer", other)]),
            self.random.choice([PartRemoved(other, part), ModeSet(other, False)]),
            ForwardBegan(other),
        ]
        if self.random.random() < 0.5:
            name = self.random.choice("abc")
            self.events += [NameBound(1, name, 0, "<Linear>"), ModuleNamed(1, name, module), ForwardEnded(other)]
        if len(self.modules) > 9:
            self.events.append(ModuleFreed(self.modules.pop(self.random.randrange(9))))

    def free(self) -> None:
        if len(self.live) > 12:
            tensor, storage, node = self.live.pop(self.random.randrange(len(self.live)))
            self.events += [TensorFreed(tensor), SavedFreed(node), NodeFreed(node), StorageFreed(storage)]

    def backward(self) -> None:
        self.backwards += 1
        nodes = [node for _, _, node in self.live[-4:]]
        self.events += [
            BackwardBegan(self.backwards, tuple(nodes[:1]), False),
            DependenciesCounted(self.backwards, tuple(nodes), (1,) * len(nodes)),
        ]
        for node, receiver in zip(nodes, [*nodes[1:], 0], strict=True):
            gradient = self.pick()[0]
            self.events += [NodeReady(node), NodeBegan(node, (gradient,))]
            self.events += [GradientSent(node, receiver, 0, gradient, False, 0), NodeEnded(node)]
            self.events.append(GradAccumulated(self.pick()[0], gradient, True))
        self.events.append(BackwardEnded(self.backwards))

    def block(self) -> None:
        if self.blocks and self.random.random() < 0.5:
            address, size = self.blocks.popitem()
            if self.random.random() < 0.2:
                self.events.append(BlockAwaitsEvent("cuda:0", address, 1, 1))
            self.events += [BlockFreed("cuda:0", address, size), BlockMerged("cuda:0", address, 1 << 21)]
            return
        self.address += 1 << 21
        size = 512 * self.random.randrange(1, 9)
        self.events += [
            BlockRequested("cuda:0", size - 3, size, "small", 0),
            SegmentAllocated("cuda:0", self.address, 1 << 21, "small", 0),
            BlockSplit("cuda:0", self.address, 1 << 21, size, "small pool"),
            BlockAllocated("cuda:0", self.address, size, size - 3, 0, 0),
        ]
        self.blocks[self.address] = size
