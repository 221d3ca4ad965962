"""The named tuples that ops with several results return (``torch.return_types``)."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from stridescope.engine.dispatch.schema import Schema


class NamedResults(tuple[Any, ...]):
    """Several results of one op: a tuple whose items also have names, printed as PyTorch prints it."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()
    n_fields = n_sequence_fields = n_unnamed_fields = 0

    def __repr__(self) -> str:
        kind = type(self)
        items = ",\n".join(f"{name}={value!r}" for name, value in zip(kind.__match_args__, self, strict=True))
        return f"torch.return_types.{kind.__name__}(\n{items})"

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self)
        return _restored, (kind.__name__, kind.__match_args__, tuple(self))


RETURN_TYPES: dict[str, type[NamedResults]] = {}


def return_type(name: str, fields: tuple[str, ...]) -> type[NamedResults]:
    """The named tuple of an op; made once per name."""
    kind = RETURN_TYPES.get(name)
    if kind is None:
        members: dict[str, Any] = {field: property(operator.itemgetter(i)) for i, field in enumerate(fields)}
        members |= {"__slots__": (), "__match_args__": fields, "__module__": "torch.return_types"}
        members |= {"n_fields": len(fields), "n_sequence_fields": len(fields)}
        kind = RETURN_TYPES[name] = type(name, (NamedResults,), members)
    return kind


def _restored(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> NamedResults:
    return return_type(name, fields)(values)


def with_names(schema: Schema, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with its results named, when the schema names several."""
    names = schema.return_names
    if len(names) < 2 or not all(names) or schema.name.startswith("_") or schema.writes:
        return function
    kind = return_type(schema.name, names)

    @functools.wraps(function, updated=())
    def named(*args: Any, **kwargs: Any) -> NamedResults:
        return kind(function(*args, **kwargs))

    return named
