"""The text "received an invalid combination of arguments": what was given, and why no overload takes it.

PyTorch reads its own listing of the overloads for this (``torch/csrc/utils/invalid_arguments.cpp``): a parameter with a
default has a name and a type that nothing given equals, and the star counts as a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stridescope.engine.device import device
from stridescope.engine.dtype import dtype
from stridescope.engine.tensor import Tensor

if TYPE_CHECKING:
    from stridescope.engine.dispatch.parser import Signature

# What is given for these types: ints go for floats.
_FITTING = {"float": ("float", "int")}


class Mismatch(Exception):
    """An argument does not fit; carries what the single-overload error needs."""

    def __init__(self, text: str, kind: type[Exception] = TypeError) -> None:
        super().__init__(text)
        self.kind = kind


class Unpacked(Mismatch):
    """A list that looked like ints from its first item, and is refused when the overload has been chosen."""


def type_name(value: Any) -> str:
    """How PyTorch names the type of a value in its errors."""
    if isinstance(value, Tensor):
        return "Parameter" if type(value).__name__ == "Parameter" else "Tensor"
    if isinstance(value, (dtype, device)):
        return f"torch.{type(value).__name__}"
    return type(value).__name__


def _deep_type_name(value: Any) -> str:
    """The same with the items of a tuple or list."""
    if type(value) not in (tuple, list):
        return type_name(value)
    inside = ", ".join(_deep_type_name(item) for item in value)
    if isinstance(value, list):
        return f"list of [{inside}]"
    return f"tuple of ({inside}{',' if len(value) == 1 else ''})"


def given(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """The types of what was given, the last keyword first."""
    named = [f"{name}={type_name(value)}" for name, value in reversed(kwargs.items())]
    return f"({', '.join([type_name(value) for value in args] + named)}{', ' if named and not args else ''})"


def why_not(signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """The line that says which arguments did not fit; PyTorch gives it when their number does."""
    if len(args) + len(kwargs) != len(_parts(signature)):
        return ""
    start = "      didn't match because some of the"
    if unknown := unrecognized(signature, len(args), kwargs):
        return f"{start} keywords were incorrect: {', '.join(unknown)}\n"
    return f"{start} arguments have invalid types: {marked(signature, args, kwargs)}\n"


def marked(signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """What was given, with marks at what does not fit; "" when it is more or less than the overload lists."""
    parts = _parts(signature)
    if len(args) + len(kwargs) != len(parts):
        return ""
    kinds = {name: kind for kind, name in parts}
    types = [_marked(kind, value) for (kind, _), value in zip(parts, args, strict=False)]
    listed = [name for _, name in parts[len(args) :]]
    named = listed if set(listed) == set(kwargs) else list(reversed(kwargs))
    types += [_marked(kinds[name], kwargs[name], f"{name}=") for name in named]
    return f"({', '.join(types)}{'' if args else ', '})"


def _parts(signature: Signature) -> list[tuple[str, str]]:
    return [_split(part) for part in signature.parts()] or [("", "")]


def unrecognized(signature: Signature, count: int, kwargs: dict[str, Any]) -> list[str]:
    """The keywords that the listing of the overload does not name after ``count`` arguments, the last first."""
    known = {name for _, name in _parts(signature)[count:]}
    return [name for name in reversed(kwargs) if name not in known]


def _split(part: str) -> tuple[str, str]:
    kind, _, name = part.rpartition(" ")
    return kind, name


def _marked(kind: str, value: Any, name: str = "") -> str:
    """The value's type, after its keyword if it has one, between exclamation marks when it is not the one listed."""
    fits = type_name(value) in _FITTING.get(kind, (kind,))
    return f"{name}{_deep_type_name(value)}" if fits else f"!{name}{_deep_type_name(value)}!"
