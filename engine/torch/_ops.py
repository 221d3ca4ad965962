"""Ops as objects that scripts compare, look up and call: a namespace's packets, and a packet's overloads.

Those of ``torch.ops.aten`` are the declared ops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from stridescope.engine.dispatch.op import DECLARED, Op
from stridescope.engine.dispatch.schema import REQUIRED, Argument, Schema
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._not_yet import missing_from


class OpOverload:
    """One overload of an op, such as ``torch.ops.aten.add.Tensor``; its subclasses know how it is called."""

    __module__ = "torch._ops"
    overloadpacket: OpOverloadPacket

    def __init__(self, namespace: str, schema: Schema) -> None:
        self.schema, self.namespace, self._opname = schema, namespace, schema.name
        self._overloadname = schema.overload or "default"
        self._schema = f"{namespace}::{schema.text}"
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__dict__["__module__"] = f"torch._ops.{namespace}"

    @property
    def is_view(self) -> bool:
        """Whether the result shares the argument's storage."""
        return self.schema.is_view

    @property
    def writes(self) -> bool:
        """Whether the op writes into an argument."""
        return bool(self.schema.writes)

    @property
    def qualname(self) -> str:
        """The name with the namespace, without the overload."""
        return f"{self.namespace}::{self._opname}"

    def name(self) -> str:
        """The name with the namespace, such as ``aten::add.Tensor``."""
        return self.qualname + (f".{self.schema.overload}" if self.schema.overload else "")

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op; raises RuntimeError for arguments that the schema does not take."""
        raise NotImplementedError


class Waiting(NamedTuple):
    """A call that was shown to something and is done once that calls ``overload`` with just these arguments."""

    overload: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    run: Callable[[], Any]

    def is_meant(self, overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether it is this call."""
        return overload is self.overload and _alike(args, self.args) and _alike(kwargs, self.kwargs)


waiting: list[Waiting] = []
"""The calls that are shown now, the innermost last."""


def _alike(one: Any, other: Any) -> bool:
    """Whether these are the same tensors and equal numbers, in lists or not."""
    if one is other:
        return True
    if isinstance(one, Tensor) or isinstance(other, Tensor) or type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    return bool(one == other)


class DeclaredOverload(OpOverload):
    """An overload of an op of our own library."""

    def __init__(self, op: Op) -> None:
        super().__init__("aten", op.schema)
        self._op = op

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op; raises RuntimeError when an argument is missing or should be a tensor and is not."""
        if waiting and waiting[-1].is_meant(self, args, kwargs):
            return waiting[-1].run()
        for position, argument in enumerate(self.schema.arguments):
            self._check(position, argument, args, kwargs)
        return self._op.call(*args, **kwargs)

    def _check(self, position: int, argument: Argument, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        given = args[position] if position < len(args) else kwargs.get(argument.name, argument.default)
        if given is REQUIRED:
            raise RuntimeError(
                f"{self.qualname}() is missing value for argument '{argument.name}'. Declaration: {self._schema}"
            )
        if argument.type != "Tensor" or given is None or isinstance(given, Tensor):
            return
        unfit, wanted = given, "Tensor"
        if argument.listed and isinstance(given, (list, tuple)):
            bad = [g for g in given if not (isinstance(g, Tensor) or (g is None and argument.optional_items))]
            if not bad:
                return
            unfit, wanted = bad[0], "List[Optional[Tensor]]" if argument.optional_items else "List[Tensor]"
        if not position or not isinstance(given, (int, float, complex)):  # a number may be the second operand
            raise RuntimeError(
                f"{self.qualname}() Expected a value of type '{wanted}' for argument '{argument.name}' but instead "
                f"found type '{type(given).__name__}'.\nPosition: {position}\nValue: {given!r}\nDeclaration: "
                f"{self._schema}\nCast error details: Unable to cast {unfit!r} to Tensor"
            )

    def split(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The bound arguments of a call as one would write them: defaults at the end left out, lists as lists."""
        arguments = self.schema.arguments
        shown = [_listed(a, v) for a, v in zip(arguments, values, strict=True)]
        changed = [a.default is REQUIRED or not _left_out(a, v) for a, v in zip(arguments, values, strict=True)]
        places = [i for i, a in enumerate(arguments) if not a.keyword_only]
        last = max((i for i in places if changed[i]), default=-1)
        named = {a.name: shown[i] for i, a in enumerate(arguments) if a.keyword_only and changed[i]}
        return tuple(shown[i] for i in places if i <= last), named


def _listed(argument: Argument, value: Any) -> Any:
    if not argument.listed or value is None:
        return value
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _left_out(argument: Argument, value: Any) -> bool:
    """Whether a call does not show this value; that no tensor is given in a tensor's place is shown."""
    missing = value is None and argument.is_tensor and not argument.keyword_only
    return not missing and _same(value, argument.default)


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    if isinstance(value, Tensor) or (isinstance(value, float) and isinstance(default, int)):
        return False  # to the dispatcher 1.0 is not the 1 of a schema
    return bool(value == default)


class OpOverloadPacket:
    """All overloads of a name, such as ``torch.ops.aten.add``; a call takes the one that ``choose`` says."""

    __module__ = "torch._ops"

    def __init__(self, namespace: str, name: str, choose: Callable[[OpOverloadPacket], Callable[..., Any]]) -> None:
        self.__name__, self._namespace, self._choose = name, namespace, choose
        self._overloads: dict[str, OpOverload] = {}

    def add(self, overload: OpOverload) -> None:
        """Take in an overload, in place of one of the same name."""
        overload.overloadpacket = self
        self._overloads[overload._overloadname] = overload

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(self._overloads)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__") or name not in self._overloads:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return self._overloads[name]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the overload that fits the arguments."""
        return self._choose(self)(*args, **kwargs)


def first_of(packet: OpOverloadPacket) -> OpOverload:
    """The overload that was declared first."""
    return next(iter(packet._overloads.values()))


def _public(packet: OpOverloadPacket) -> Callable[..., Any]:
    """The function or method of the name, which finds the overload that fits."""
    name = packet.__name__
    if any(argument.optional_items for argument in first_of(packet).schema.arguments):
        return first_of(packet)  # functions take no None among the tensors of a list
    function: Any = next((each[name] for each in FUNCTIONS.values() if name in each), getattr(Tensor, name, None))
    return function or first_of(packet)


@functools.cache
def _declared(name: str) -> OpOverloadPacket | None:
    made = OpOverloadPacket("aten", name, _public)
    for op in DECLARED:
        if op.name == name:
            made.add(DeclaredOverload(op))
    return made if made._overloads else None


@functools.cache
def overload_of(op: Op) -> DeclaredOverload:
    """The object that scripts know an op as."""
    return cast(DeclaredOverload, getattr(aten, op.name)._overloads[op.schema.overload or "default"])


def declared(name: str) -> DeclaredOverload:
    """The declared op that has this name and one overload."""
    return cast(DeclaredOverload, first_of(getattr(aten, name)))


class _OpNamespace:
    """``torch.ops.aten`` or ``torch.ops.mylib``: its packets by name, as ``find`` has them."""

    __module__ = "torch._ops"

    def __init__(
        self, name: str, find: Callable[[str], OpOverloadPacket | None], names: Callable[[], Iterable[str]]
    ) -> None:
        self._name, self._find, self._names = name, find, names

    def __getattr__(self, name: str) -> OpOverloadPacket:
        found = None if name.startswith("__") else self._find(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        return found

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self._name}' from 'torch.ops'>"

    def __dir__(self) -> list[str]:
        return sorted(self._names())


aten = _OpNamespace("aten", _declared, lambda: {op.name for op in DECLARED})
__all__ = ["OpOverload", "OpOverloadPacket"]


__getattr__ = missing_from("torch._ops")
