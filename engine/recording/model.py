"""What the machine looks like at one step: plain records that panels, commands and tests read.

A :class:`State` is the fold of all events up to and including one step. It is read-only for everyone but
:mod:`stridescope.engine.recording.state`. Records of which there are many hold no cycles, so they are structs that
the garbage collector passes over. Steps are the numbers of events, counted from 0; step -1 is the empty
machine before the first event. Ids are those of :mod:`stridescope.engine.events`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from stridescope.engine.recording.allocator_state import AllocatorState
from stridescope.engine.recording.content import Content


class Span(msgspec.Struct, gc=False):
    """A range of source text: 1-based lines, 0-based UTF-8 byte columns as CPython counts them."""

    source: int
    line: int
    column: int
    end_line: int
    end_column: int


class Name(msgspec.Struct, gc=False):
    """What a name of a frame stands for: a tensor (its id) or a value (its short repr), which may be a module."""

    name: str
    tensor: int
    text: str
    module: int = 0


class Frame(msgspec.Struct, gc=False):
    """A call of a user's function; the module itself is the first frame."""

    id: int
    parent: int
    source: int
    function: str
    line: int
    names: dict[str, Name]


class ModulePart(msgspec.Struct, gc=False):
    """A part of a module: a ``parameter``, a ``buffer`` (the tensor's id) or a ``module`` inside (its id)."""

    name: str
    role: str
    id: int


class ModuleState(msgspec.Struct, gc=False):
    """A live module and its parts in their order.

    ``path`` leads to it from a variable of a frame, the outermost that there is, by attributes: ``net.body.0``; it is
    empty where no variable leads there. ``frame`` is that variable's frame and ``depth`` counts the attributes.
    """

    id: int
    kind: str
    training: bool
    born: int
    parts: dict[str, ModulePart]
    path: str = ""
    frame: int = 0
    depth: int = 0


class TensorState(msgspec.Struct, gc=False):
    """A live tensor. ``names`` are the variables that stand for it, innermost frame first, and paths to it."""

    id: int
    storage: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: str
    base: int
    counter: int
    version: int
    requires_grad: bool
    node: int
    output_nr: int
    grad: int
    born: int
    op: str
    names: tuple[str, ...] = ()


class StorageState(msgspec.Struct, gc=False):
    """A live storage, and its bytes where they are kept; where not, ``summary`` tells what is known."""

    id: int
    nbytes: int
    device: str
    address: int
    born: int
    written: int
    content: Content | None = None
    summary: dict[str, Any] | None = None

    @property
    def values(self) -> bytes | None:
        """The bytes, read from the recording when first asked for; None where they are not kept."""
        return None if self.content is None else self.content.read()


class Saved(msgspec.Struct, gc=False):
    """One saved tensor of a node: the field's name, the tensor and storage, and the version it must still have."""

    field: str
    tensor: int
    storage: int
    nbytes: int
    version: int
    is_output: bool


class NodeState(msgspec.Struct, gc=False):
    """A live grad_fn node. ``edges`` are (node, input number), node 0 where no gradient is wanted.

    ``module`` is the innermost one whose forward ran when the node was made, 0 where none did.

    ``phase`` in the current backward pass: "" (not part of it), "waiting", "ready", "running", "done",
    "failed".
    """

    id: int
    name: str
    sequence_nr: int
    edges: tuple[tuple[int, int], ...]
    variable: int
    born: int
    op: str
    module: int
    saved: list[Saved]
    freed: bool = False
    phase: str = ""
    waiting: int = 0


class SentGradient(msgspec.Struct, gc=False):
    """A gradient on an edge of the graph in the current or last backward pass."""

    node: int
    receiver: int
    input_nr: int
    gradient: int
    step: int


@dataclasses.dataclass(slots=True)
class BackwardState:
    """The current backward pass, or the last one when not ``running``; ``failed`` is the node that broke it off."""

    number: int
    roots: tuple[int, ...]
    running: bool
    keep_graph: bool
    ready: list[int]
    sent: list[SentGradient]
    current: int = 0
    nodes_done: int = 0
    nodes_total: int = 0
    failed: int = 0


@dataclasses.dataclass(slots=True)
class OpState:
    """The op that runs, or the last that ran when ``running`` is False."""

    op: str
    step: int
    inputs: tuple[int, ...]
    arguments: tuple[Any, ...]
    outputs: tuple[int, ...]
    span: Span
    keys: tuple[str, ...]
    running: bool
    error: str = ""


@dataclasses.dataclass(slots=True)
class State:
    """The whole machine at ``step``.

    ``frames`` are the calls that have not ended, in the order in which they began; ``here`` is the one whose line or op
    was told last, 0 where that is not known. ``ops`` are the ops that run, outermost first: an op that is
    made of others has them inside; ``op`` is the innermost, or the last one when none runs. ``forwards`` are the
    modules whose forward runs, outermost first.
    """

    step: int
    frames: list[Frame]
    tensors: dict[int, TensorState]
    storages: dict[int, StorageState]
    nodes: dict[int, NodeState]
    backward: BackwardState | None
    op: OpState | None
    allocator: AllocatorState
    line: int = 0
    source: int = 0
    status: int | None = None
    error: tuple[str, str, Span] | None = None
    ops: list[OpState] = dataclasses.field(default_factory=list)
    modules: dict[int, ModuleState] = dataclasses.field(default_factory=dict)
    forwards: tuple[int, ...] = ()
    here: int = 0

    @property
    def stack(self) -> list[Frame]:
        """The calls that led to ``here``, outermost first: without generators that wait, and without other threads."""
        by_id = {frame.id: frame for frame in self.frames}
        found: list[Frame] = []
        at = by_id.pop(self.here, None)
        while at is not None:
            found.append(at)
            at = by_id.pop(at.parent, None)
        return found[::-1] or self.frames
