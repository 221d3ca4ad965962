"""Nodes of the backward graph: what ``grad_fn`` is.

A node knows where gradients go next (``next_functions``), what it saved, and how it turns incoming gradients into
outgoing ones. Nodes of declared ops take their formula from the op's declaration as a value (:class:`Formula`), so
this room imports no op.
"""

from __future__ import annotations

import inspect
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.saved import FREED, SavedVariable, record_saved
from stridescope.engine.events import GradFnSet, NodeFreed, NodeMade, SavedFreed, journal
from stridescope.engine.tensor import Tensor, tensor_id

_ids = itertools.count(1)
LAST = (1 << 64) - 1  # the sequence number of AccumulateGrad: leaves are written as soon as their gradient is there

Edge = tuple["Node | None", int]
Gradients = tuple[Tensor | None, ...]


class Sequence_(threading.local):
    """The next sequence number of this thread; the ready queue runs younger nodes first."""

    next: int = 0


sequence = Sequence_()


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
        self.sequence_nr = sequence.next
        sequence.next += 1

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
    return OutputMeta(tensor._array.shape, tensor.dtype, tensor.device)


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


# ---- formulas ----------------------------------------------------------------------------------------------------

# What a formula's parameter may ask of a tensor argument, beside the tensor itself: suffix -> getter.
FACETS: dict[str, Callable[[Tensor], Any]] = {
    "_sym_sizes": lambda t: t._array.shape,
    "_sym_strides": lambda t: t.strides,
    "_sym_storage_offset": lambda t: t.offset,
    "_sym_numel": lambda t: t._array.size,
    "_scalar_type": lambda t: t.dtype,
    "_device": lambda t: t.device,
    "_dim": lambda t: t._array.ndim,
}
INCOMING = frozenset({"grad", "grads", "needs"})


class Formula(NamedTuple):
    """One derivative of an op: the arguments it is for, the function, and the values it asks for by name.

    ``wants`` are the function's parameter names: ``grad`` (the gradient of the first output), ``grads`` (of all),
    ``needs`` (which of ``inputs`` want a gradient), ``result``, ``result0``, ``result1``…, an argument's name, or an
    argument's name with a facet such as ``self_sym_sizes``.
    """

    inputs: tuple[str, ...]
    function: Callable[..., Any]
    wants: tuple[str, ...]

    @classmethod
    def of(cls, names: str, function: Callable[..., Any]) -> Formula:
        """Read a declaration's entry ``"self": lambda grad, other: …``; several names are divided by commas."""
        return cls(tuple(n.strip() for n in names.split(",")), function, tuple(inspect.signature(function).parameters))


class Derivative:
    """All formulas of an op, with what must be saved for which of them; made once per op.

    ``inputs`` are the names of the differentiable arguments in order, ``name`` the node's class name.
    """

    def __init__(self, name: str, inputs: tuple[str, ...], formulas: tuple[Formula, ...]) -> None:
        self.name, self.inputs, self.formulas = name, inputs, formulas
        self.node_type: type[OpNode] = type(name, (OpNode,), {"derivative": self, "__slots__": ()})
        self.node_type.__module__ = "torch.autograd"
        used = [want for formula in formulas for want in formula.wants if want not in INCOMING]
        self.guarded = {want for want in used if used.count(want) == 1} if len(formulas) > 1 else set()
        self.plans: dict[Any, tuple[tuple[Formula, ...], tuple[str, ...]]] = {}

    def plan(self, needed: tuple[bool, ...]) -> tuple[tuple[Formula, ...], tuple[str, ...]]:
        """The formulas that these inputs call for, and the names to save.

        A value used by one formula only is saved when that formula is needed; one used by several always is.
        """
        plan = self.plans.get(needed)
        if plan is None:
            wanted = {name for name, need in zip(self.inputs, needed, strict=True) if need}
            active = tuple(f for f in self.formulas if wanted.intersection(f.inputs))
            active_wants = {want for f in active for want in f.wants}
            saves = [w for f in self.formulas for w in f.wants if w not in INCOMING]
            kept = tuple(dict.fromkeys(w for w in saves if w in active_wants or w not in self.guarded))
            plan = self.plans[needed] = active, kept
        return plan


class OpNode(Node):
    """The node of a declared op."""

    __slots__ = ("formulas", "needed", "saved")
    derivative: Derivative

    def save(self, values: dict[str, Any], needed: tuple[bool, ...]) -> None:
        """Keep what the needed formulas ask for; ``values`` holds arguments and results by name."""
        self.needed = needed
        self.formulas, names = self.derivative.plan(needed)
        saved: dict[str, Any] = {}
        for name in names:
            saved[name] = self._kept(name, _asked(name, values))
        self.saved: dict[str, Any] | None = saved

    def _kept(self, name: str, value: Any) -> Any:
        if isinstance(value, Tensor):
            is_output = name.startswith("result") and name not in self.derivative.inputs
            if journal.emit is not None:
                record_saved(self, name, value, value.version_counter.value, is_output)
            return SavedVariable(value, is_output)
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], Tensor):
            return [self._kept(name, item) for item in value]
        return value

    def value(self, name: str) -> Any:
        """A saved value by the formula's name for it; raises RuntimeError when it was freed or overwritten."""
        if self.saved is None:
            raise RuntimeError(FREED)
        return self._unpacked(self.saved[name])

    def _unpacked(self, kept: Any) -> Any:
        if isinstance(kept, SavedVariable):
            return kept.unpack(self)
        if isinstance(kept, list):
            return [self._unpacked(item) for item in kept]
        return kept

    def apply(self, gradients: Gradients) -> Gradients:
        """Run the needed formulas; an undefined gradient of the only output gives undefined results."""
        inputs = self.derivative.inputs
        if all(g is None for g in gradients):
            return (None,) * len(self.edges)
        if self.saved is None:
            raise RuntimeError(FREED)
        found: dict[str, Any] = {}
        for formula in self.formulas:
            needs = tuple(self.needed[inputs.index(n)] for n in formula.inputs)
            values = [self._incoming(want, gradients, needs) for want in formula.wants]
            result = formula.function(*values)
            if len(formula.inputs) == 1:
                found[formula.inputs[0]] = result
            else:
                found.update(zip(formula.inputs, result, strict=True))
        return self._in_edge_order(found)

    def _incoming(self, want: str, gradients: Gradients, needs: tuple[bool, ...]) -> Any:
        if want == "grad":
            return gradients[0]
        if want == "grads":
            return gradients
        return needs if want == "needs" else self._unpacked(self.saved[want])  # type: ignore[index]

    def _in_edge_order(self, found: dict[str, Any]) -> Gradients:
        result: list[Tensor | None] = []
        for name, need in zip(self.derivative.inputs, self.needed, strict=True):
            value = found.get(name) if need else None
            if isinstance(value, (list, tuple)):
                result.extend(value)
            elif need or name not in self.listed:
                result.append(value)
            else:
                result.extend([None] * self.listed[name])
        return tuple(result)

    @property
    def listed(self) -> dict[str, int]:
        """How many edges each Tensor[] argument has; empty for most ops."""
        lengths: dict[str, int] = self.__dict__.get("_listed", {})
        return lengths

    def release(self) -> None:
        """Free what was saved for backward."""
        saved, self.saved = self.saved, None
        if saved is None:
            return
        for kept in saved.values():
            for item in kept if isinstance(kept, list) else (kept,):
                if isinstance(item, SavedVariable):
                    item.release()
        if self._id and (emit := journal.emit) is not None:
            emit((SavedFreed.code, self._id))

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_saved_"):
            return self._saved_attribute(attribute[len("_saved_") :])
        if attribute.startswith("_raw_saved_"):
            saved = object.__getattribute__(self, "saved")
            if saved is not None and attribute[len("_raw_saved_") :] in saved:
                return saved[attribute[len("_raw_saved_") :]]
        raise AttributeError(f"'{self.name()}' object has no attribute '{attribute}'")

    def _saved_attribute(self, name: str) -> Any:
        if self.saved is not None and name not in self.saved:
            raise AttributeError(f"'{self.name()}' object has no attribute '_saved_{name}'")
        value = self.value(name)
        return tuple(value) if isinstance(value, list) else value

    def __dir__(self) -> list[str]:
        saved = self.saved or {}
        fields = [f"_saved_{n}" for n in saved] + [
            f"_raw_saved_{n}" for n in saved if isinstance(saved[n], SavedVariable)
        ]
        return sorted({*object.__dir__(self), *fields})


def _asked(name: str, values: dict[str, Any]) -> Any:
    if name in values:
        return values[name]
    for suffix, facet in FACETS.items():
        if name.endswith(suffix):
            of = values[name[: -len(suffix)]]
            return [facet(t) for t in of] if isinstance(of, (list, tuple)) else facet(of)
    raise KeyError(f"a formula asks for {name}, which is neither an argument nor a result")


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
__all__ = [
    "AccumulateGrad",
    "Derivative",
    "Edge",
    "Formula",
    "Node",
    "OpNode",
    "accumulator",
    "grad_mode",
    "set_history",
]
