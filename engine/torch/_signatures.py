"""The schema of a Python function, read from its annotations: ``torch.library.infer_schema``."""

from __future__ import annotations

import collections.abc
import inspect
import itertools
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from stridescope.engine.device import device
from stridescope.engine.dtype import BY_NAME, dtype
from stridescope.engine.tensor import Tensor

_SCALARS: dict[Any, str] = {int: "SymInt", float: "float", bool: "bool", str: "str"}
_OTHERS: dict[Any, str] = {dtype: "ScalarType", device: "Device"}
_LISTS = (list, collections.abc.Sequence)
_NUMBERS = (frozenset({int, float, bool}), frozenset({int, float, complex}))
# The numbers by which PyTorch's C++ knows dtypes (c10/core/ScalarType.h).
_NUMBERED = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64",
    "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16",
)  # fmt: skip


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None) -> str:
    """Return the schema of a function whose parameters and result are annotated.

    ``mutates_args`` names the tensors that the function writes into, or is "unknown". Raises ValueError that names
    the parameter without a usable annotation.
    """
    signature = inspect.signature(prototype_function)
    hints = _hints(prototype_function)
    signature = signature.replace(
        parameters=[p.replace(annotation=hints.get(n, p.annotation)) for n, p in signature.parameters.items()],
        return_annotation=hints.get("return", signature.return_annotation),
    )

    def refuse(what: str) -> NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    parts, keyword_only = [], False
    for place, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        parts.append(_parameter(place, name, parameter, mutates_args, refuse))
    _check_mutated(mutates_args, signature.parameters, refuse)
    if signature.return_annotation is inspect.Signature.empty:
        refuse("No return type annotation was provided. Please add one.")
    returned = _returned(signature.return_annotation, refuse)
    return f"{op_name or ''}({', '.join(parts)}) -> {returned}"


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):
        return {}


def _parameter(
    place: int, name: str, parameter: inspect.Parameter, mutates: Any, refuse: Callable[[str], NoReturn]
) -> str:
    if parameter.annotation is inspect.Parameter.empty:
        refuse(f"Parameter {name} must have a type annotation.")
    kind = _kind(parameter.annotation)
    if kind is None:
        refuse(f"Parameter {name} has unsupported type {parameter.annotation}. The valid types are: {valid()}.")
    if mutates == "unknown" or name in mutates:
        if not kind.startswith("Tensor"):
            refuse(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
        kind = kind.replace("Tensor", f"Tensor(a{place}!)", 1)
    if parameter.default is inspect.Parameter.empty:
        return f"{kind} {name}"
    return f"{kind} {name}={_default(name, parameter.default, refuse)}"


def _check_mutated(mutates: Any, names: Iterable[str], refuse: Callable[[str], NoReturn]) -> None:
    strange = set() if mutates == "unknown" else set(mutates) - set(names)
    if strange:
        refuse(f"{sorted(strange)} in mutates_args were not found in the function's signature")


def _kind(annotation: Any) -> str | None:
    """The schema's word for an annotation, None where there is none."""
    if isinstance(annotation, type) and issubclass(annotation, Tensor):
        return "Tensor"
    if annotation in _SCALARS or annotation in _OTHERS:
        return _SCALARS.get(annotation) or _OTHERS[annotation]
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        if frozenset(inside) in _NUMBERS:
            return "Scalar"
        rest = [each for each in inside if each is not type(None)]
        found = _kind(typing.Union[tuple(rest)]) if len(rest) < len(inside) else None  # noqa: UP007
        return None if found is None or found.endswith("?") else f"{found}?"
    if origin in _LISTS and len(inside) == 1:
        found = _kind(inside[0])
        return None if found is None or "[" in found else f"{found}[]"
    return None


def valid() -> list[str]:
    """The annotations that can be used, in words."""
    base = ["Tensor", *(kind.__name__ for kind in (*_SCALARS, *_OTHERS)), "int | float | bool"]
    return [*base, *itertools.chain.from_iterable((f"Optional[{each}]", f"Sequence[{each}]") for each in base)]


def _default(name: str, value: Any, refuse: Callable[[str], NoReturn]) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dtype):
        return str(number_of(value))
    refuse(
        f"Parameter {name} has an unsupported default value type {type(value)}. Please file an issue on GitHub so we "
        "can prioritize this."
    )


def number_of(kind: dtype) -> int:
    """The number of a dtype in schemas."""
    return _NUMBERED.index(kind.name)


def dtype_of(number: int) -> dtype:
    """The dtype that a schema's number means."""
    return BY_NAME[_NUMBERED[number]]


def _returned(annotation: Any, refuse: Callable[[str], NoReturn]) -> str:
    if annotation is None or annotation is type(None):
        return "()"
    if typing.get_origin(annotation) is tuple:
        inside = [_kind(each) for each in typing.get_args(annotation)]
        if None not in inside:
            return f"({', '.join(str(each) for each in inside)})"
    found = _kind(annotation)
    if found is None:
        refuse(f"Return has unsupported type {annotation}. The valid types are: {valid()}.")
    return found
