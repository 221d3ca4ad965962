"""``torch.ops.aten``: the declared ops as objects, one for each overload, that scripts compare, look up and call."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from stridescope.engine.dispatch.op import DECLARED, Op
from stridescope.engine.dispatch.schema import REQUIRED, Argument
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._not_yet import missing_from


class OpOverload:
    """One overload of an op, such as ``torch.ops.aten.add.Tensor``."""

    __module__ = "torch._ops"

    def __init__(self, packet: OpOverloadPacket, op: Op) -> None:
        self.overloadpacket, self._op = packet, op
        self._overloadname = op.schema.overload or "default"
        self._opname, self.namespace = op.name, "aten"
        self.__name__ = f"{op.name}.{self._overloadname}"
        self.__dict__["__module__"] = "torch._ops.aten"

    @property
    def _schema(self) -> str:
        return f"aten::{self._op.schema.text}"

    @property
    def is_view(self) -> bool:
        """Whether the result shares the argument's storage."""
        return self._op.schema.is_view

    @property
    def writes(self) -> bool:
        """Whether the op writes into an argument."""
        return bool(self._op.schema.writes)

    def name(self) -> str:
        """The name with the namespace, such as ``aten::add.Tensor``."""
        return f"aten::{self._op.qualified}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op; raises RuntimeError when an argument is missing or should be a tensor and is not."""
        for position, argument in enumerate(self._op.schema.arguments):
            self._check(position, argument, args, kwargs)
        return self._op.call(*args, **kwargs)

    def _check(self, position: int, argument: Argument, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        given = args[position] if position < len(args) else kwargs.get(argument.name, argument.default)
        if given is REQUIRED:
            raise RuntimeError(
                f"aten::{self._opname}() is missing value for argument '{argument.name}'. Declaration: {self._schema}"
            )
        if argument.type != "Tensor" or argument.listed or given is None or isinstance(given, Tensor):
            return
        if not position or not isinstance(given, (int, float, complex)):  # a number may be the second operand
            raise RuntimeError(
                f"aten::{self._opname}() Expected a value of type 'Tensor' for argument '{argument.name}' but instead "
                f"found type '{type(given).__name__}'.\nPosition: {position}\nValue: {given!r}\nDeclaration: "
                f"{self._schema}\nCast error details: Unable to cast {given!r} to Tensor"
            )

    def split(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The bound arguments of a call as one would write them: defaults at the end left out, lists as lists."""
        arguments = self._op.schema.arguments
        shown = [_listed(a, v) for a, v in zip(arguments, values, strict=True)]
        changed = [a.default is REQUIRED or not _same(v, a.default) for a, v in zip(arguments, values, strict=True)]
        places = [i for i, a in enumerate(arguments) if not a.keyword_only]
        last = max((i for i in places if changed[i]), default=-1)
        named = {a.name: shown[i] for i, a in enumerate(arguments) if a.keyword_only and changed[i]}
        return tuple(shown[i] for i in places if i <= last), named


def _listed(argument: Argument, value: Any) -> Any:
    if not argument.listed or value is None:
        return value
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _same(value: Any, default: Any) -> bool:
    return value is default or (not isinstance(value, Tensor) and bool(value == default))


class OpOverloadPacket:
    """All overloads of a name, such as ``torch.ops.aten.add``."""

    __module__ = "torch._ops"

    def __init__(self, name: str, ops: Sequence[Op]) -> None:
        self.__name__ = name
        self._overloads = {overload._overloadname: overload for overload in (OpOverload(self, op) for op in ops)}

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(self._overloads)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__") or name not in self._overloads:
            raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no overload name '{name}'")
        return self._overloads[name]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the overload that fits the arguments, as the function or method of this name does."""
        name = self.__name__
        function: Any = next((each[name] for each in FUNCTIONS.values() if name in each), getattr(Tensor, name, None))
        return (function or next(iter(self._overloads.values())))(*args, **kwargs)


@functools.cache
def packet(name: str) -> OpOverloadPacket:
    """The overloads of an op; raises AttributeError when there is no such op."""
    found = [op for op in DECLARED if op.name == name]
    if not found:
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
    return OpOverloadPacket(name, found)


@functools.cache
def overload_of(op: Op) -> OpOverload:
    """The object that scripts know an op as."""
    return packet(op.name)._overloads[op.schema.overload or "default"]


class _OpNamespace:
    """``torch.ops.aten``."""

    __module__ = "torch._ops"

    def __getattr__(self, name: str) -> OpOverloadPacket:
        return packet(name)

    def __repr__(self) -> str:
        return "<module 'torch.ops.aten' from 'torch.ops'>"

    def __dir__(self) -> list[str]:
        return sorted({op.name for op in DECLARED})


aten = _OpNamespace()
__all__ = ["OpOverload", "OpOverloadPacket"]


__getattr__ = missing_from("torch._ops")
