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
from stridescope.engine.autograd.plan import FACET_OF, FACETS, INCOMING, Keep, Plan, planned
from stridescope.engine.autograd.saved import RELEASED, SavedTensor, record_saved, spelled_out, unpacked
from stridescope.engine.events import SavedFreed, journal
from stridescope.engine.tensor import Tensor, from_array

NUMBERS = (int, float, bool, complex)


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
        self.raw = tuple(name for name in self.names if self.keeps_tensors(name))
        self.plans: dict[tuple[bool, ...], Plan] = {}
        self.with_number: Derivative | None = None

    def _guards(self, want: str, used: list[str]) -> bool:
        """Whether this is saved only when its formula is needed: a whole tensor that one one-argument formula uses."""
        (asking, *others) = (f for f in self.formulas if want in f.wants)
        return self.keeps_tensors(want) and not others and len(asking.inputs) == 1 and used.count(want) == 1

    def keeps_tensors(self, want: str) -> bool:
        """Whether a node keeps tensors under this name."""
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
            plan = self.plans[needed] = planned(self, needed)
        return plan

    def keep(self, name: str) -> Keep:
        """Where a call has what a formula calls ``name``; raises KeyError when nothing is called so."""
        if name in self.arguments:
            return Keep(name, False, self.arguments.index(name), "")
        if name in self.returns:
            return Keep(name, True, self.returns.index(name), "")
        if name == "result":
            return Keep(name, True, 0 if len(self.returns) == 1 else -1, "")
        if name.startswith("result") and name[6:].isdigit():
            return Keep(name, True, int(name[6:]), "")
        for suffix in FACETS:
            if name.endswith(suffix):
                whole = self.keep(name[: -len(suffix)])
                return whole._replace(name=name, facet=suffix)
        raise KeyError(f"{self.name}: a formula asks for {name}, which is neither an argument nor a result")


def _shown(want: str) -> bool:
    """PyTorch's nodes keep dtypes of inputs, and what they know of lists of tensors, for themselves."""
    return not want.endswith(("_scalar_type", "_device", "_geometry")) and not want.startswith("tensors_")


class OpNode(Node):
    """The node of a declared op."""

    __slots__ = ("lengths", "plan", "saved")
    derivative: Derivative
    saved: dict[str, Any]

    def save_arguments(self, args: Sequence[Any]) -> None:
        """Keep what the needed formulas ask of the arguments."""
        self.saved = self.plan.save(self._kept, *args)

    def save_results(self, results: Sequence[Any]) -> None:
        """Keep what the formulas ask of the results, which have this node as their history by now."""
        saved = self.saved
        for name, _, place, facet in self.plan.of_results:
            value = results[place] if place >= 0 else list(results)
            saved[name] = FACET_OF[facet](value) if facet else self._kept(name, value, True)

    def _kept(self, name: str, value: Any, is_output: bool = False) -> Any:
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
        if gradients[0] is None and not any(g is not None for g in gradients):
            return (None,) * len(self._edges)
        if not grad_mode.enabled:
            found = self.plan.run(self, gradients, grad_mode.shown is not None)
        else:
            before, grad_mode.formula = grad_mode.formula, True
            try:
                found = self.plan.run(self, gradients, True)
            finally:
                grad_mode.formula = before
        return found if self.lengths is None else self._opened(found)

    def _opened(self, found: tuple[Any, ...]) -> Gradients:
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
        for name in self.plan.tensors:
            kept = saved[name]
            if isinstance(kept, Tensor):
                freed, saved[name] = True, RELEASED
            elif kept.__class__ is SavedTensor:
                freed = True
                kept.release()
            elif kept.__class__ is list:
                freed = freed or any(isinstance(item, (Tensor, SavedTensor)) for item in kept)
                saved[name] = [_let_go(item) for item in kept]
            elif kept.__class__ in NUMBERS:  # a number in a tensor's place counts as a saved tensor
                saved[name] = RELEASED
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
            return self._spelled_out(name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute}'")

    def _spelled_out(self, name: str) -> Any:
        """What is kept of a tensor argument, as ``_raw_saved_*`` shows it: never a plain value, nor a bare tensor.

        From now on it is kept so, for one may register hooks on it.
        """
        kept = self.saved.get(name)
        if isinstance(kept, Tensor):
            kept = self.saved[name] = spelled_out(kept)
        elif isinstance(kept, list):
            kept = self.saved[name] = [spelled_out(item) if isinstance(item, Tensor) else item for item in kept]
        if isinstance(kept, list):
            return tuple(_raw(item) for item in kept)
        return _raw(kept)

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


def _let_go(kept: Any) -> Any:
    """What is left of a saved value when the graph is freed."""
    if isinstance(kept, Tensor):
        return RELEASED
    if kept.__class__ is SavedTensor:
        kept.release()
    return kept


def _raw(kept: Any) -> Any:
    if isinstance(kept, SavedTensor):
        return kept
    return SavedTensor.of_nothing(None if kept is RELEASED else kept)
