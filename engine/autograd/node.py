"""Nodes of the backward graph: what ``grad_fn`` is.

A node knows where gradients go next (``next_functions``), what it saved, and how it turns incoming gradients into
outgoing ones. Nodes of declared ops take their formula from the op's declaration as a value (:class:`Formula`), so
this room imports no op.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stridescope.engine.events import GradFnSet, NodeFreed, NodeMade, journal
from stridescope.engine.tensor import Tensor, tensor_id

_ids = itertools.count(1)
_new_tuple = tuple.__new__
LAST = (1 << 64) - 1  # the sequence number of AccumulateGrad: leaves are written as soon as their gradient is there

Edge = tuple["Node | None", int]
Gradients = tuple[Tensor | None, ...]
NO_EDGE: Edge = (None, 0)


_sequence = itertools.count()
next_sequence_nr = _sequence.__next__  # younger nodes run first among the ready ones


class OutputMeta(NamedTuple):
    """What the engine checks a gradient against: the forward output's sizes, dtype and device."""

    sizes: tuple[int, ...]
    dtype: Any
    device: Any


class NodeHooks:
    """The hooks of one node, made when the first is registered.

    ``tensor``: output number -> {key: hook} of ``Tensor.register_hook``; ``retain``: output number -> weak reference
    to the tensor whose ``.grad`` is kept; ``pre`` and ``post``: ``Node.register_prehook`` and ``register_hook``.
    """

    __slots__ = ("post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, dict[int, Callable[[Any], Any]]] = {}
        self.retain: dict[int, weakref.ref[Tensor]] = {}
        self.pre: dict[int, Callable[[Any], Any]] = {}
        self.post: dict[int, Callable[[Any, Any], Any]] = {}


class Node:
    """A node of the backward graph.

    Attributes:
        edges: where each gradient goes: (node or None, input number), one per differentiable input.
        outputs: one :class:`OutputMeta` per forward output.
        sequence_nr: when it was made; higher runs earlier among the ready ones.
    """

    __slots__ = ("__dict__", "__weakref__", "_id", "edges", "hooks", "outputs", "sequence_nr")

    def __init__(self, edges: tuple[Edge, ...]) -> None:
        self.edges = edges
        self.outputs: list[OutputMeta] = []
        self.hooks: NodeHooks | None = None
        self._id = 0
        self.sequence_nr = next_sequence_nr()

    def apply(self, gradients: Gradients) -> Gradients:
        """Turn the gradients of the forward outputs into those of the inputs; None where none is wanted."""
        raise NotImplementedError

    def release(self) -> None:
        """Free what was saved for backward."""

    def name(self) -> str:
        """PyTorch's name of the node, such as ``MulBackward0``."""
        return type(self).__name__

    @property
    def id(self) -> int:
        """The node's number in events; it is announced to the recording when it has none yet."""
        if not self._id:
            self._announce()
        return self._id

    def _announce(self) -> None:
        self._id = next(_ids)
        if (emit := journal.emit) is not None:
            ids, numbers = edge_ids(self.edges)
            variable = getattr(self, "variable", None)
            tid = tensor_id(variable) if variable is not None else 0
            emit((NodeMade.code, self._id, self.name(), min(self.sequence_nr, 1 << 62), ids, numbers, tid))

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """The nodes that this node's gradients go to, each with the input number there."""
        return self.edges

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for notes on this node (``torch.autograd.graph.Node.metadata``)."""
        notes: dict[Any, Any] = self.__dict__.setdefault("_metadata", {})
        return notes

    def _sequence_nr(self) -> int:
        return self.sequence_nr

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


Node.__module__ = "torch.autograd.graph"


def edge_ids(edges: Sequence[Edge]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The edges as events write them: node ids (0 for None) and input numbers."""
    return tuple(0 if node is None else node.id for node, _ in edges), tuple(number for _, number in edges)


class AccumulateGrad(Node):
    """The node of a leaf: it adds the gradient to ``variable.grad``."""

    __slots__ = ("variable",)

    def __init__(self, variable: Tensor) -> None:
        self.edges = ()
        self.outputs = [meta_of(variable)]
        self.hooks = None
        self._id = 0
        self.sequence_nr = LAST
        self.variable = variable


def meta_of(tensor: Tensor) -> OutputMeta:
    """What a gradient for this tensor must look like."""
    return _new_tuple(OutputMeta, (tensor._array.shape, tensor.dtype, tensor.device))


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The leaf's AccumulateGrad node; the leaf holds it weakly, as PyTorch does."""
    node = None if leaf._accumulator is None else leaf._accumulator()
    if node is None:
        node = AccumulateGrad(leaf)
        leaf._accumulator = weakref.ref(node)
    return node  # type: ignore[no-any-return]


def gradient_edge(tensor: Any) -> Edge:
    """Where the gradient of ``tensor`` goes; (None, 0) for what needs none."""
    if not isinstance(tensor, Tensor) or not tensor._requires_grad:
        return None, 0
    if tensor._node is not None:
        return tensor._node, tensor._output_nr
    return accumulator(tensor), 0


def set_history(node: Node, outputs: Sequence[Tensor]) -> None:
    """Make ``node`` the grad_fn of these results, in order."""
    metas = node.outputs
    for tensor in outputs:
        tensor._output_nr = len(metas)
        metas.append(meta_of(tensor))
        tensor._node, tensor._requires_grad = node, True
        if (emit := journal.emit) is not None:
            emit((GradFnSet.code, tensor_id(tensor), node.id, tensor._output_nr))


def _node_freed(node: Node) -> None:
    if node._id and (emit := journal.emit) is not None:
        emit((NodeFreed.code, node._id))


def _watch(recording: bool) -> None:
    """Finalisers cost time, so nodes have one only while something records."""
    if recording:
        Node.__del__ = _node_freed  # type: ignore[attr-defined]
    elif "__del__" in Node.__dict__:
        del Node.__del__  # type: ignore[attr-defined]


journal.watchers.append(_watch)
