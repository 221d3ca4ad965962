"""What is inside a value of the script, part by part: for windows that open containers, Modules and objects lazily.

No code of the script runs: containers are read by the builtins' own methods, objects by their ``__dict__`` and slots.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stridescope.engine.worker.names import ATOMS, look_at
from stridescope.engine.worker.protocol import Part
from stridescope.engine.worker.text import short_text, tensor_of

LATE = object()


def parts_of(value: object, path: Sequence[int], first: int, count: int) -> tuple[tuple[Part, ...], int]:
    """Follow ``path`` into a value; return ``count`` parts from ``first`` on, and how many there are in all."""
    for number in path:
        value = next(itertools.islice(_parts(value), number, None), ("", None))[1]
    wanted = itertools.islice(_parts(value), first, first + count)
    return tuple(_part(step, inside) for step, inside in wanted), size_of(value)


def size_of(value: Any) -> int:
    """Return how many parts a value has."""
    kind = type(value)
    if kind in ATOMS or tensor_of(value) is not None or issubclass(kind, type):
        return 0
    for builtin in (list, tuple, dict, set, frozenset):
        if issubclass(kind, builtin):
            return builtin.__len__(value)
    return sum(1 for _ in _attributes(value))


def _part(step: str, value: object) -> Part:
    tensor, text, _ = look_at(value, deep=False)
    return Part(step, text if not tensor else short_text(value), tensor, size_of(value))


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if issubclass(kind, list):
        yield from _numbered(list.__iter__(value))
    elif issubclass(kind, tuple):
        fields = getattr(kind, "_fields", None)
        inside = tuple.__iter__(value)
        if isinstance(fields, tuple) and len(fields) == tuple.__len__(value):
            yield from ((f".{name}", part) for name, part in zip(fields, inside, strict=True))
        else:
            yield from _numbered(inside)
    elif issubclass(kind, dict):
        yield from ((f"[{short_text(key)}]", part) for key, part in dict.items(value))
    elif issubclass(kind, set):
        yield from (("", part) for part in set.__iter__(value))
    elif issubclass(kind, frozenset):
        yield from (("", part) for part in frozenset.__iter__(value))
    elif kind not in ATOMS and tensor_of(value) is None and not issubclass(kind, type):
        yield from _attributes(value)


def _numbered(items: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"[{number}]", part) for number, part in enumerate(items))


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    """Yield an object's attributes, first a Module's parameters, buffers and children by their own names."""
    attributes: Mapping[str, Any] = {}
    if type(value).__dictoffset__:
        attributes = object.__getattribute__(value, "__dict__")
    for group in ("_parameters", "_buffers", "_modules"):
        if isinstance(inside := attributes.get(group), dict):
            yield from ((f".{name}", part) for name, part in dict.items(inside))
    yield from ((f".{name}", part) for name, part in attributes.items() if not name.startswith("_"))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = kind.__dict__.get(name)
            if not name.startswith("_") and type(member).__name__ == "member_descriptor":
                part = _slot(member, value)
                if part is not LATE:
                    yield f".{name}", part


def _slot(member: Any, value: object) -> Any:
    try:
        return member.__get__(value)
    except AttributeError:  # not set yet
        return LATE
