"""Remembered bindings: which overload a call with these argument types takes, and how its arguments reach it.

Binding a call by the rules of :mod:`stridescope.engine.dispatch.parser` costs more than a small op. Types and
keyword names decide it almost always, so the choice is kept under ``(types, names)``. Where the contents matter (a
tuple of ints), the plan looks at them and gives up with Unplanned when they are not what was seen first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stridescope.engine.dispatch.schema import REQUIRED, Argument
from stridescope.engine.dtype import dtype
from stridescope.engine.tensor import Tensor

if TYPE_CHECKING:
    from stridescope.engine.dispatch.parser import Signature

Plan = Callable[..., Any]
TENSOR_TYPES: set[type] = {Tensor}  # subclasses that behave as Tensor in every way join (Parameter)
_INT = ("int", "SymInt")
_KEEPS: dict[type, tuple[str, ...]] = {
    int: ("int", "SymInt", "Scalar"),
    float: ("Scalar", "float"),
    bool: ("bool", "Scalar"),
    complex: ("Scalar",),
    str: ("str",),
    dtype: ("ScalarType",),
}


class Unplanned(Exception):
    """The contents of an argument do not fit the remembered choice."""


def _ints(value: Any) -> tuple[int, ...]:
    for item in value:
        if item.__class__ is not int:
            raise Unplanned
    return value if value.__class__ is tuple else tuple(value)


def _tensors(value: Any) -> Any:
    if not value:  # fits lists of any kind
        raise Unplanned
    for item in value:
        if item.__class__ not in TENSOR_TYPES:
            raise Unplanned
    return value


def _repeated(length: int, value: int) -> tuple[int, ...]:
    return (value,) * length


def _keep(value: Any) -> Any:
    return value


def converter(kind: type, argument: Argument, numbers_fit: bool) -> Callable[[Any], Any] | None:
    """How a value of this type becomes what the schema wants; None when types alone do not decide it."""
    if kind is type(None):
        return _keep if argument.optional or argument.default is None else None
    if argument.listed:
        if argument.type == "Tensor":
            return _tensors if kind in (tuple, list) else None
        if argument.type not in _INT:
            return None
        if kind is int and argument.length:
            return functools.partial(_repeated, argument.length)
        return _ints if kind in (tuple, list) or kind.__name__ == "Size" else None
    if kind in TENSOR_TYPES:
        return _keep if argument.type == "Tensor" else None
    if argument.type == "Tensor":
        return _keep if numbers_fit and kind in (int, float, bool, complex) else None
    if argument.type == "float" and kind is int:
        return float
    return _keep if argument.type in _KEEPS.get(kind, ()) else None


def plan(signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan | None:
    """The plan for calls like this one, which ``signature`` has just taken; None when there can be none."""
    first = signature.first
    if signature.varargs and len(args) > first and args[first].__class__ is int:
        return _varargs_plan(signature, args, kwargs)
    arguments, names = signature.arguments, signature.names
    if len(args) > len(arguments) or any(name not in names for name in kwargs):
        return None
    places = [*range(len(args)), *(names.index(name) for name in kwargs)]
    values = (*args, *kwargs.values())
    found = [converter(type(v), arguments[p], signature.numbers_fit) for v, p in zip(values, places, strict=True)]
    if any(c is None for c in found):
        return None
    call = signature.op.call
    if not kwargs and all(c is _keep for c in found):
        return call
    return _converting(call, [c for c in found if c is not None], places, [a.default for a in arguments])


def _converting(call: Plan, converters: list[Callable[[Any], Any]], places: list[int], defaults: list[Any]) -> Plan:
    """The plan as one function with everything in its place, written out: a loop would cost what a small op does."""
    last = max(places) + 1 if places else 0
    row = [f"d{place}" for place in range(last)]
    for number, (place, convert) in enumerate(zip(places, converters, strict=True)):
        row[place] = f"v{number}" if convert is _keep else f"c{number}(v{number})"
    if any(defaults[place] is REQUIRED for place in range(last) if place not in places):
        raise AssertionError("a plan was made for a call that lacks a required argument")
    scope: dict[str, Any] = {f"d{place}": default for place, default in enumerate(defaults)}
    scope |= {f"c{number}": convert for number, convert in enumerate(converters)} | {"call": call}
    values = ", ".join(f"v{number}" for number in range(len(places)))
    source = compile(f"lambda {values}: call({', '.join(row)})", f"<op {call.__name__}>", "eval")
    planned: Plan = eval(source, scope)
    return planned


def _varargs_plan(signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan | None:
    """``x.view(2, 3)``: the ints are one list."""
    if kwargs or any(value.__class__ is not int for value in args[signature.first :]):
        return None
    call = signature.op.call
    if signature.first:
        return lambda self, *sizes: call(self, sizes)
    return lambda *sizes: call(sizes)
