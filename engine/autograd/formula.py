"""Derivative formulas as data, and the nodes that run them.

A declaration gives each differentiable argument a function; the names of its parameters say what it asks for. From
that follows what a node saves, which attributes (``_saved_self``…) it has, and how it is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.node import UNTOLD, Gradients, Node
from stridescope.engine.autograd.one_node import as_one_node
from stridescope.engine.autograd.saved import FREED, SavedTensor, record_saved
from stridescope.engine.events import SavedFreed, journal
from stridescope.engine.tensor import Tensor, from_array

# What a formula's parameter may ask of a tensor argument, beside the tensor itself: suffix -> getter.
FACETS: dict[str, Callable[[Tensor], Any]] = {
    "_sym_sizes": lambda t: t._array.shape,
    "_sym_sizes_opt": lambda t: t._array.shape,
    "_sym_argsize_0": lambda t: t._array.shape[0],
    "_sym_argsize_1": lambda t: t._array.shape[1],
    "_sym_argsize_2": lambda t: t._array.shape[2],
    "_sym_argsize_minus_1": lambda t: t._array.shape[-1],
    "_sym_argsize_minus_2": lambda t: t._array.shape[-2],
    "_sym_strides": lambda t: t.strides,
    "_sym_storage_offset": lambda t: t.offset,
    "_sym_numel": lambda t: t._array.size,
    "_scalar_type": lambda t: t.dtype,
    "_device": lambda t: t.device,
    "_geometry": lambda t: t.layout_,
    "_dim": lambda t: t._array.ndim,
}
NUMBERS = (int, float, bool, complex)
INCOMING = frozenset({"grad", "grads", "needs"})


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a plain function's parameters; ``inspect`` would take a third of the engine's import time."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


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
        return cls(tuple(n.strip() for n in names.split(",")), function, parameters(function))


class Keep(NamedTuple):
    """One thing a node saves: its name, and where the call has it (an argument's or result's position)."""

    name: str
    of_result: bool
    place: int  # -1: all results
    facet: Callable[[Any], Any] | None


class Step(NamedTuple):
    """One formula as a plan runs it: the positions among the inputs it fills, and ``run(grads, values)``."""

    positions: tuple[int, ...]
    run: Callable[[Gradients, dict[str, Any]], Any]


class Plan(NamedTuple):
    """What a call does whose inputs need these gradients: what it keeps, and the formulas it will run."""

    needed: tuple[bool, ...]
    of_args: tuple[Keep, ...]
    of_results: tuple[Keep, ...]
    numbers: tuple[str, ...]  # what is kept of Tensor arguments: a number in their place counts as a saved tensor
    steps: tuple[Step, ...]
    save: Callable[[Any, Sequence[Any]], dict[str, Any]]  # of_args as one expression: (node, arguments) -> what is kept


# Nodes that PyTorch wrote by hand say their C++ name.
SHOWN_NAMES = {
    "CopyBackwards": "torch::autograd::CopyBackwards",
    "NotImplemented": "torch::autograd::NotImplemented",
}


class Derivative:
    """All formulas of an op; made once per op.

    Attributes:
        name: the node's class name.
        inputs: the names of the differentiable arguments, in order.
        node_type: the class of its nodes.
    """

    def __init__(
        self,
        name: str,
        inputs: tuple[str, ...],
        formulas: tuple[Formula, ...],
        arguments: tuple[str, ...],
        returns: tuple[str, ...],
        tensors: frozenset[str],
        scalars: frozenset[str] = frozenset(),
    ) -> None:
        self.name, self.inputs = name, inputs
        # PyTorch runs them in the order of their names, and so makes the nodes of a higher derivative.
        self.formulas = tuple(sorted(formulas, key=lambda formula: ", ".join(formula.inputs)))
        self.arguments, self.returns, self.tensors, self.scalars = arguments, returns, tensors, scalars
        self.indices = tuple(arguments.index(name) for name in inputs)
        self.node_type: type[OpNode] = type(
            name, (OpNode,), {"derivative": self, "__slots__": (), "shown_name": SHOWN_NAMES.get(name)}
        )
        self.node_type.__module__ = "builtins"
        used = [want for formula in self.formulas for want in set(formula.wants) - INCOMING]
        # What the node's attributes are called: the same whichever inputs of a call need a gradient.
        self.names = tuple(dict.fromkeys(w for f in self.formulas for w in f.wants if w not in INCOMING and _shown(w)))
        self.guarded = {want for want in used if self._guards(want, used)} if len(inputs) > 1 else set()
        self.raw = tuple(name for name in self.names if self._keeps_tensors(name))
        self.plans: dict[tuple[bool, ...], Plan] = {}
        self.with_number: Derivative | None = None

    def _guards(self, want: str, used: list[str]) -> bool:
        """Whether this is saved only when its formula is needed: a whole tensor that one one-argument formula uses."""
        (asking, *others) = (f for f in self.formulas if want in f.wants)
        return self._keeps_tensors(want) and not others and len(asking.inputs) == 1 and used.count(want) == 1

    def _keeps_tensors(self, want: str) -> bool:
        return want in self.tensors or want in self.returns or want[:6] == "result" and not want.endswith(tuple(FACETS))

    def in_formulas(self, other: Derivative) -> None:
        """Where a formula calls the op with a number on the right, its node is ``other``'s: C++ has an op for that."""
        self.with_number = other

    def plan(self, needed: tuple[bool, ...]) -> Plan:
        """The plan for inputs of which these need a gradient.

        A tensor used by one formula only is saved when that formula is needed; everything else always is.
        """
        plan = self.plans.get(needed)
        if plan is None:
            plan = self.plans[needed] = self._planned(needed)
        return plan

    def _planned(self, needed: tuple[bool, ...]) -> Plan:
        wanted = {name for name, need in zip(self.inputs, needed, strict=True) if need}
        active = [f for f in self.formulas if wanted.intersection(f.inputs)]
        active_wants = {want for f in active for want in f.wants}
        asked = [w for f in self.formulas for w in f.wants if w not in INCOMING]
        kept = dict.fromkeys(w for w in asked if w in active_wants or w not in self.guarded)
        keeps = [self.keep(name) for name in sorted(kept)]
        of_args = tuple(keep for keep in keeps if not keep.of_result)
        of_results = tuple(keep for keep in keeps if keep.of_result)
        numbers = tuple(keep.name for keep in of_args if keep.facet is None and keep.name in self.tensors)
        steps = tuple(self._step(f, needed) for f in active)
        return Plan(needed, of_args, of_results, numbers, steps, _saver(of_args))

    def keep(self, name: str) -> Keep:
        """Where a call has what a formula calls ``name``; raises KeyError when nothing is called so."""
        if name in self.arguments:
            return Keep(name, False, self.arguments.index(name), None)
        if name in self.returns:
            return Keep(name, True, self.returns.index(name), None)
        if name == "result":
            return Keep(name, True, 0 if len(self.returns) == 1 else -1, None)
        if name.startswith("result") and name[6:].isdigit():
            return Keep(name, True, int(name[6:]), None)
        for suffix, facet in FACETS.items():
            if name.endswith(suffix):
                whole = self.keep(name[: -len(suffix)])
                return whole._replace(name=name, facet=_over_lists(facet))
        raise KeyError(f"{self.name}: a formula asks for {name}, which is neither an argument nor a result")

    def _source(self, want: str) -> str:
        return f"placed(values[{want!r}])" if want in self.tensors else f"values[{want!r}]"

    def _step(self, formula: Formula, needed: tuple[bool, ...]) -> Step:
        positions = tuple(self.inputs.index(n) for n in formula.inputs)
        needs = tuple(needed[p] for p in positions)
        sources = {"grad": "grads[0]", "grads": "grads", "needs": "needs"}
        parts = [sources.get(want) or self._source(want) for want in formula.wants]
        source = f"lambda grads, values: formula({', '.join(parts)})"
        scope = {
            "formula": as_one_node(self.name, formula.inputs, formula.function),
            "needs": needs,
            "placed": _placed,
        }
        return Step(positions, eval(source, scope))


def _saver(keeps: Sequence[Keep]) -> Callable[[Any, Sequence[Any]], dict[str, Any]]:
    """What a call's arguments leave behind, written out: every op that is tracked passes here."""
    scope = {f"facet{number}": keep.facet for number, keep in enumerate(keeps)}
    parts = [
        f"{keep.name!r}: "
        + (
            f"facet{number}(args[{keep.place}])"
            if keep.facet
            else f"node._kept({keep.name!r}, args[{keep.place}], False)"
        )
        for number, keep in enumerate(keeps)
    ]
    saver: Callable[[Any, Sequence[Any]], dict[str, Any]] = eval(f"lambda node, args: {{{', '.join(parts)}}}", scope)
    return saver


class _Placed:
    """Numbers that stand in a tensor's place: PyTorch has a tensor there, so its node has an edge for it."""

    class Float(float):
        """A float in a tensor's place."""

    class Int(int):
        """An int in a tensor's place."""


def _placed(value: Any) -> Any:
    """A saved value of a Tensor argument for a formula: a number is marked as such where the formula is recorded."""
    if not grad_mode.formula:
        return value
    return _Placed.Float(value) if value.__class__ is float else _Placed.Int(value) if value.__class__ is int else value


def _shown(want: str) -> bool:
    """PyTorch's nodes keep dtypes of inputs, and what they know of lists of tensors, for themselves."""
    return not want.endswith(("_scalar_type", "_device", "_geometry")) and not want.startswith("tensors_")


def _over_lists(facet: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The facet of a tensor, or of each tensor in a list; None stays None."""

    def of(value: Any) -> Any:
        if isinstance(value, Tensor):
            return facet(value)
        return [facet(item) for item in value] if isinstance(value, (list, tuple)) else None

    return of


_RELEASED = object()  # stands where a number was kept in the place of a tensor


def unpacked(kept: Any, node: Any) -> Any:
    """A saved value for a formula; raises RuntimeError when the tensor was overwritten since."""
    if kept.__class__ is SavedTensor:
        return kept.unpack(node)
    if kept.__class__ is list:
        return [unpacked(item, node) for item in kept]
    if kept is _RELEASED:
        raise RuntimeError(FREED)
    return kept


class OpNode(Node):
    """The node of a declared op."""

    __slots__ = ("lengths", "plan", "saved")
    derivative: Derivative
    saved: dict[str, Any]

    def save_arguments(self, args: Sequence[Any]) -> None:
        """Keep what the needed formulas ask of the arguments."""
        self.saved = self.plan.save(self, args)

    def save_results(self, results: Sequence[Any]) -> None:
        """Keep what the formulas ask of the results, which have this node as their history by now."""
        saved = self.saved
        for name, _, place, facet in self.plan.of_results:
            value = results[place] if place >= 0 else list(results)
            saved[name] = self._kept(name, value, True) if facet is None else facet(value)

    def _kept(self, name: str, value: Any, is_output: bool) -> Any:
        if isinstance(value, Tensor):
            if journal.emit is not None and self._id != UNTOLD:
                record_saved(self, name, value, value.version_counter.value, is_output)
            return SavedTensor(value, is_output)
        if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
            return [self._kept(name, item, is_output) for item in value]
        return value

    def value(self, name: str) -> Any:
        """A saved value by the formula's name for it; raises RuntimeError when it was freed or overwritten."""
        return unpacked(self.saved.get(name), self)

    def _run(self, gradients: Gradients) -> Gradients:
        """Run the needed formulas; undefined gradients of all outputs give undefined results."""
        if not grad_mode.enabled:
            return self._computed(gradients)
        before, grad_mode.formula = grad_mode.formula, True
        try:
            return self._computed(gradients)
        finally:
            grad_mode.formula = before

    def _computed(self, gradients: Gradients) -> Gradients:
        plan = self.plan
        if gradients[0] is None and not any(g is not None for g in gradients):
            return (None,) * len(self._edges)
        values = {name: unpacked(kept, self) for name, kept in self.saved.items()}
        found: list[Any] = [None] * len(plan.needed)
        for positions, run in plan.steps:
            result = run(gradients, values)
            if len(positions) == 1:
                found[positions[0]] = result
            else:
                for position, value in zip(positions, result, strict=True):
                    found[position] = value
        return tuple(found) if self.lengths is None else self._opened(found)

    def _opened(self, found: list[Any]) -> Gradients:
        """One gradient per edge: a Tensor[] argument has as many edges as tensors."""
        opened: list[Any] = []
        for position, value in enumerate(found):
            length = (self.lengths or {}).get(position)
            if length is None:
                opened.append(value)
            else:
                opened.extend([None] * length if value is None else value)
        return tuple(opened)

    def _release(self) -> None:
        """Free what was saved for backward."""
        freed = False
        saved = self.saved
        for name in self.plan.numbers:
            if saved[name].__class__ in NUMBERS:
                saved[name] = _RELEASED
        for kept in saved.values():
            for item in kept if kept.__class__ is list else (kept,):
                if item.__class__ is SavedTensor:
                    item.release()
                    freed = True
        if freed and self._id and (emit := journal.emit) is not None:
            emit((SavedFreed.code, self._id))

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_saved_"):
            return self._shown_value(attribute, attribute[len("_saved_") :])
        if attribute.startswith("_raw_saved_"):
            name = attribute[len("_raw_saved_") :]
            self._known(attribute, name)
            if name not in self.derivative.raw:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute}'")
            return _raw(self.saved.get(name))
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute}'")

    def _known(self, attribute: str, name: str) -> None:
        if name not in self.derivative.names:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute}'")

    def _shown_value(self, attribute: str, name: str) -> Any:
        self._known(attribute, name)
        value = self.value(name)
        if value.__class__ in NUMBERS and name in self.derivative.tensors:
            return _wrapped(value)
        if name in self.derivative.scalars:
            return value
        if isinstance(value, (list, tuple)):
            return tuple(_unsigned(item) for item in value)
        return _unsigned(value)

    def __dir__(self) -> list[str]:
        fields = [f"_saved_{name}" for name in self.derivative.names]
        raw = [f"_raw_saved_{name}" for name in self.derivative.raw]
        return sorted({*super().__dir__(), *fields, *raw})


def _unsigned(value: Any) -> Any:
    """PyTorch shows its 64-bit numbers without their sign."""
    return value + (1 << 64) if value.__class__ is int and value < 0 else value


def _wrapped(number: Any) -> Tensor:
    """A number that was given for a tensor, as the tensor it stands for: 0-d, in the widest dtype of its kind."""
    return from_array(np.asarray(number))


def _raw(kept: Any) -> Any:
    """What is kept of a tensor argument, as ``_raw_saved_*`` shows it: never a plain value."""
    if isinstance(kept, list):
        return tuple(_raw(item) for item in kept)
    return kept if isinstance(kept, SavedTensor) else SavedTensor.of_nothing(kept)
