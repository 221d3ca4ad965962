"""Nodes of the backward graph: what ``grad_fn`` is.

A node knows where gradients go next (``next_functions``), what it saved, and how it turns incoming gradients into
outgoing ones. Nodes of declared ops take their formula from the op's declaration as a value, so this room imports no
op.
"""

from __future__ import annotations

import itertools
import re
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stridescope.engine.announce import tensor_id
from stridescope.engine.autograd.handle import RemovableHandle, registered
from stridescope.engine.events import GradFnSet, NodeFreed, NodeMade, journal
from stridescope.engine.tensor import Tensor

_ids = itertools.count(1)
_new = object.__new__
LAST = (1 << 64) - 1  # the sequence number of AccumulateGrad: leaves are written as soon as their gradient is there

Edge = tuple["Node | None", int]
Gradients = tuple[Tensor | None, ...]
NO_EDGE: Edge = (None, 0)
UNTOLD = -1  # the number of a node that is announced, with what it saved, when its op ends


_sequence = itertools.count()
next_sequence_nr = _sequence.__next__  # younger nodes run first among the ready ones


class OutputMeta(NamedTuple):
    """What the engine checks a gradient against: the forward output's sizes, dtype and device."""

    sizes: tuple[int, ...]
    dtype: Any
    device: Any


class NodeHooks:
    """The hooks of one node, made when the first is registered.

    Attributes:
        tensor: output number -> the hooks of ``Tensor.register_hook`` on that output, one dict a tensor: a tensor that
            was written in place leaves its hooks here and starts a new dict at its new node.
        retain: output number -> weak reference to the tensor whose ``.grad`` is kept.
        pre: ``Node.register_prehook``.
        post: ``Node.register_hook``.
    """

    __slots__ = ("post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: list[tuple[int, dict[int, Callable[[Any], Any]]]] = []
        self.retain: dict[int, weakref.ref[Tensor]] = {}
        self.pre: OrderedDict[int, Callable[[Any], Any]] = OrderedDict()
        self.post: OrderedDict[int, Callable[[Any, Any], Any]] = OrderedDict()


# What PyTorch's nodes have, beside what they saved.
SHOWN = (
    "__call__", "_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr", "metadata", "name",
    "next_functions", "register_hook", "register_prehook", "requires_grad",
)  # fmt: skip
# Called with every new node: anomaly mode keeps the traceback, node_creation_hook tells the user. Mostly empty.
on_creation: list[Callable[[Node], None]] = []


class Node:
    """A node of the backward graph.

    What the engine keeps here has names with an underscore, for the node of a custom function is its ``ctx`` too, and
    users give that attributes of any name.

    Attributes:
        _edges: where each gradient goes: (node or None, input number), one per differentiable input.
        _outputs: one :class:`OutputMeta` per forward output; None for an output that is not differentiable.
        _sequence: when it was made; higher runs earlier among the ready ones.
    """

    __slots__ = ("__dict__", "__weakref__", "_edges", "_hooks", "_id", "_outputs", "_sequence")
    shown_name: str | None = None  # what name() says when it is not the class's own name
    stands_in = False  # whether it becomes the history of what it saved when that was detached in place

    def __init__(self, edges: tuple[Edge, ...]) -> None:
        self._edges = edges
        self._outputs: list[OutputMeta | None] = []
        self._hooks: NodeHooks | None = None
        self._id = 0
        self._sequence = next_sequence_nr()
        if on_creation:
            for told in on_creation:
                told(self)

    def _run(self, gradients: Gradients) -> Gradients:
        """Turn the gradients of the forward outputs into those of the inputs; None where none is wanted."""
        raise NotImplementedError

    def _release(self) -> None:
        """Free what was saved for backward."""

    def __call__(self, *gradients: Tensor | None) -> Any:
        """Run the node by hand on these gradients; raises TypeError when they are not one for each output."""
        expected = max(len(self._outputs), 1)
        if len(gradients) != expected:
            raise TypeError(f"expected {expected} arguments, got {len(gradients)} instead")
        for position, gradient in enumerate(gradients):
            if gradient is not None and not isinstance(gradient, Tensor):
                raise TypeError(f"argument {position} is not a Variable")
        results = self._run(gradients)
        return results[0] if len(results) == 1 else results

    def name(self) -> str:
        """PyTorch's name of the node, such as ``MulBackward0``."""
        return self.shown_name or type(self).__name__

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """The nodes that this node's gradients go to, each with the input number there."""
        return self._edges

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for notes on this node (``torch.autograd.graph.Node.metadata``)."""
        notes: dict[Any, Any] = self.__dict__.setdefault("_metadata", {})
        return notes

    @property
    def requires_grad(self) -> bool:
        """Always true: the node exists because something required a gradient."""
        return True

    @property
    def _input_metadata(self) -> tuple[OutputMeta | None, ...]:
        return tuple(self._outputs)

    def __dir__(self) -> list[str]:
        return sorted({*dir(object), *SHOWN})

    def _register_hook_dict(self, tensor: Tensor) -> None:
        """Call the hooks in ``tensor._backward_hooks`` with the gradient of that output."""
        hooks_of(self).tensor.append((tensor._output_nr, tensor._hooks))

    def _sequence_nr(self) -> int:
        return self._sequence

    def _set_sequence_nr(self, number: int) -> None:
        self._sequence = number

    def register_hook(self, fn: Callable[[Any, Any], Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after each run; it may return other ``grad_inputs``."""
        return registered(hooks_of(self).post, fn)

    def register_prehook(self, fn: Callable[[Any], Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before each run; it may return other ``grad_outputs``."""
        return registered(hooks_of(self).pre, fn)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


Node.__module__ = "torch.autograd.graph"


def next_node_id() -> int:
    """A number for a node that is announced now."""
    return next(_ids)


def node_id(node: Node) -> int:
    """The node's number in events; it is announced to the recording when it has none yet."""
    if not node._id:
        _announce(node)
    return node._id


def _announce(node: Node) -> None:
    node._id = next(_ids)
    if (emit := journal.emit) is not None:
        targets, numbers = edge_ids(node._edges)
        variable = tensor_id(node.variable) if isinstance(node, AccumulateGrad) else 0
        name, number = type(node).__name__, min(node._sequence, 1 << 62)
        emit((NodeMade.code, node._id, name, number, targets, numbers, variable))


def forward_name(node: Node) -> str:
    """What messages call the op that made a node: ``Mul`` of ``MulBackward0``, ``Squeeze1`` of ``SqueezeBackward1``."""
    return re.sub(r"Backward(0$|(?=\d*$))", "", node.name())


def hooks_of(node: Node) -> NodeHooks:
    """The node's hooks, to add one to."""
    if node._hooks is None:
        node._hooks = NodeHooks()
    return node._hooks


def edge_ids(edges: Sequence[Edge]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The edges as events write them: node ids (0 for None) and input numbers."""
    ids = [0 if node is None else node._id or node_id(node) for node, _ in edges]
    return tuple(ids), tuple([number for _, number in edges])


class AccumulateGrad(Node):
    """The node of a leaf: it adds the gradient to ``variable.grad``."""

    __slots__ = ("variable",)
    variable: Tensor
    shown_name = "torch::autograd::AccumulateGrad"

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), "variable"])


def meta_of(tensor: Tensor) -> OutputMeta:
    """What a gradient for this tensor must look like; the dtype remembers it for tensors on the CPU."""
    shape, known = tensor._array.shape, tensor.dtype.metas
    if not tensor._plain:
        return OutputMeta(shape, tensor.dtype, tensor._device)
    meta: OutputMeta | None = known.get(shape)
    if meta is None:
        if len(known) > _MOST_METAS:
            known.clear()
        meta = known[shape] = OutputMeta(shape, tensor.dtype, tensor._device)
    return meta


_MOST_METAS = 4096  # remembered by a dtype


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The leaf's AccumulateGrad node; the leaf holds it weakly, as PyTorch does."""
    node: AccumulateGrad | None = None if leaf._accumulator is None else leaf._accumulator()
    if node is None:
        node = _new(AccumulateGrad)
        node._edges, node._outputs, node._hooks, node._id = (), [meta_of(leaf)], None, 0
        node._sequence, node.variable = LAST, leaf
        leaf._accumulator = weakref.ref(node)
    return node


def set_history(node: Node, outputs: Sequence[Tensor | None]) -> None:
    """Make ``node`` the grad_fn of these results, in order; None stands for one that was not computed."""
    metas = node._outputs
    for tensor in outputs:
        if tensor is None:
            metas.append(None)
            continue
        tensor._output_nr = len(metas)
        metas.append(meta_of(tensor))
        tensor._node, tensor._requires_grad = node, True
        if (emit := journal.emit) is not None:
            emit((GradFnSet.code, tensor_id(tensor), node_id(node), tensor._output_nr))


def _node_freed(node: Node) -> None:
    if node._id and (emit := journal.emit) is not None:
        emit((NodeFreed.code, node._id))


def _watch(recording: bool) -> None:
    """Finalisers cost time, so nodes have one only while something records."""
    if recording:
        Node.__del__ = _node_freed  # type: ignore[attr-defined]
    elif "__del__" in Node.__dict__:
        del Node.__del__  # type: ignore[attr-defined]


journal.watch(_watch)
AccumulateGrad.__module__ = "builtins"
