"""From declarations to what users call: functions by namespace, and the methods and operators of Tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stridescope.engine.dispatch.call import failed
from stridescope.engine.dispatch.converters import is_number
from stridescope.engine.dispatch.older_forms import with_older_forms
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.parser import Function
from stridescope.engine.dispatch.plans import Unplanned
from stridescope.engine.dispatch.torch_function import ALIASES, answered, overriding
from stridescope.engine.events import journal
from stridescope.engine.ops import (
    attributes,
    complexes,
    exchange,
    indexing,
    linalg_lu,
    norms,
    operators,
    printing,
    removed,
    searching,
    spectral,
    views_split,
)
from stridescope.engine.tensor import Tensor

# Namespaces whose functions lack the prefix that their schemas have: linalg_svd is torch.linalg.svd.
PREFIXES = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}

WITH_METHODS = (
    attributes,
    indexing,
    printing,
    complexes,
    operators,
    norms,
    searching,
    linalg_lu,
    spectral,
    removed,
    views_split,
    exchange,
)


def functions_of(ops: Iterable[Op]) -> dict[str, dict[str, Function]]:
    """Group the ops by namespace and name; the order of overloads is that of their declarations."""
    grouped: dict[str, dict[str, list[Op]]] = {}
    for op in ops:
        if op.function:
            name = op.name.removeprefix(PREFIXES.get(op.namespace, ""))
            grouped.setdefault(op.namespace, {}).setdefault(name, []).append(op)
    return {
        namespace: {
            name: with_older_forms(Function(overloads[0].name, overloads, method=False, namespace=namespace))
            for name, overloads in names.items()
        }
        for namespace, names in grouped.items()
    }


def attach_methods(ops: Iterable[Op]) -> None:
    """Give Tensor its methods, operators, properties, indexing and printed form."""
    grouped: dict[str, list[Op]] = {}
    for op in ops:
        if op.method:
            grouped.setdefault(op.name, []).append(op)
    for name, overloads in grouped.items():
        setattr(Tensor, name, _method(with_older_forms(Function(name, overloads, method=True))))
    for module in WITH_METHODS:
        for name, value in module.METHODS.items():
            setattr(Tensor, name, value)
    by_name = {op.qualified: op for op in ops}
    for symbol, (name, reflected) in OPERATORS.items():
        setattr(Tensor, symbol, operator(symbol, name, by_name, reflected))


def _method(function: Function) -> Callable[..., Any]:
    """A plain Python function: binding it to a tensor costs less than a descriptor of our own."""
    plans, resolve, named = function.plans, function.resolve, function.named

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return named((self, *args), kwargs)
        if not args:  # the usual numbers of arguments, without the loop that takes as long as a view
            kinds: tuple[type, ...] = (self.__class__,)
        elif len(args) == 1:
            kinds = (self.__class__, type(args[0]))
        else:
            kinds = (self.__class__, *map(type, args))
        plan = plans.get(kinds)
        if plan is not None:
            try:
                return plan(self, *args)
            except Unplanned:
                pass
        return resolve((self, *args), kwargs)

    method.__name__ = function.__name__
    method.__qualname__ = f"Tensor.{function.__name__}"
    method.__doc__ = function.__doc__
    method.function = function  # type: ignore[attr-defined]
    function.public = method
    return method


# Python operator -> (op, whether the operands change places). Python numbers stand for tensors here.
OPERATORS: dict[str, tuple[str, bool]] = {
    "__add__": ("add.Tensor", False),
    "__radd__": ("add.Tensor", False),
    "__iadd__": ("add_.Tensor", False),
    "__sub__": ("sub.Tensor", False),
    "__isub__": ("sub_.Tensor", False),
    "__mul__": ("mul.Tensor", False),
    "__rmul__": ("mul.Tensor", False),
    "__imul__": ("mul_.Tensor", False),
    "__truediv__": ("div.Tensor", False),
    "__itruediv__": ("div_.Tensor", False),
    "__neg__": ("neg", False),
    "__eq__": ("eq.Tensor", False),
    "__ne__": ("ne.Tensor", False),
    "__lt__": ("lt.Tensor", False),
    "__le__": ("le.Tensor", False),
    "__gt__": ("gt.Tensor", False),
    "__ge__": ("ge.Tensor", False),
}


def operator(symbol: str, name: str, ops: dict[str, Op], reflected: bool) -> Callable[..., Any]:
    """The operator method; unknown operands give NotImplemented, so that Python raises its own TypeError."""
    op = ops[name]
    call, core = op.call, getattr(op.call, "core", None)
    if len(op.schema.arguments) == 1:
        return lambda self: call(self)

    def method(self: Tensor, other: Any) -> Any:
        if not (isinstance(other, Tensor) or is_number(other)):
            func = getattr(Tensor, ALIASES.get(symbol, symbol))
            return answered(func, found, (self, other), None) if (found := overriding((other,))) else NotImplemented
        if core is None or journal.full:
            return call(self, other)
        try:
            return core(self, other, 1) if extra else core(self, other)
        except Exception:
            failed(op, (self, other, 1) if extra else (self, other))
            raise

    extra = len(op.schema.arguments) == 3
    method.__name__ = symbol
    return method
