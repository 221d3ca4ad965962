"""PyTorch's schema lines, read into data.

``add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`` names an op ``add`` with overload ``Tensor``.
Alias marks say what a result shares: ``Tensor(a)`` a view of that argument, ``Tensor(a!)`` the argument itself,
written in place.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any

_HEAD = re.compile(r"^(?P<name>\w+)(?:\.(?P<overload>\w+))?\((?P<args>.*)\)\s*->\s*(?P<returns>.+)$")
_ARG = re.compile(
    r"^(?P<type>[A-Za-z_]\w*(?:\([a-z]\d*!?(?:\s*->\s*\*)?\))?(?:\?)?(?:\[\d*\])?\??)\s+(?P<name>\w+)(?:=(?P<default>.*))?$"
)
_ALIAS = re.compile(r"\(([a-z]\d*)(!?)[^)]*\)")
_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False, "inf": float("inf"), "-inf": float("-inf")}
REQUIRED = object()


@dataclasses.dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a schema.

    Attributes:
        type: the bare type: Tensor, int, float, bool, Scalar, ScalarType, Device, Layout, MemoryFormat, str,
            Generator, Dimname.
        optional: whether None is allowed; listed: whether it is a list; length: a list's fixed length, or 0.
        default: the default value, or REQUIRED.
        keyword_only: whether it stands after ``*``.
        alias, writes: its alias set, and whether the op writes into it.
    """

    name: str
    type: str
    optional: bool
    listed: bool
    length: int
    default: Any
    keyword_only: bool
    alias: str
    writes: bool
    optional_items: bool = False

    @property
    def is_tensor(self) -> bool:
        """Whether tensors are passed here, alone or in a list."""
        return self.type == "Tensor"


@dataclasses.dataclass(frozen=True, slots=True)
class Schema:
    """A whole schema line: ``text``, ``name``, ``overload``, ``arguments``, and the results' alias sets and names."""

    text: str
    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    return_aliases: tuple[str, ...]
    return_names: tuple[str, ...]

    @property
    def is_view(self) -> bool:
        """Whether a result shares an argument's storage without writing."""
        return any(self.return_aliases) and not self.writes

    @property
    def writes(self) -> tuple[str, ...]:
        """The names of the arguments that the op writes into."""
        return tuple(a.name for a in self.arguments if a.writes)


@functools.cache
def parse(text: str) -> Schema:
    """Read a schema line; raises ValueError that names what is wrong with it."""
    head = _HEAD.match(text.strip())
    if head is None:
        raise ValueError(f"not a schema line: {text}")
    arguments, keyword_only = [], False
    for part in split(head["args"]):
        if part == "*":
            keyword_only = True
        else:
            arguments.append(_argument(part, keyword_only))
    returns = head["returns"].strip()
    parts = split(returns[1:-1]) if returns.startswith("(") else [returns]
    named = [part.rsplit(" ", 1) if " " in part else [part, ""] for part in parts]
    aliases = tuple((m[1] if (m := _ALIAS.search(kind)) else "") for kind, _ in named)
    types = tuple(_ALIAS.sub("", kind) for kind, _ in named)
    names = tuple(name for _, name in named)
    return Schema(text.strip(), head["name"], head["overload"] or "", tuple(arguments), types, aliases, names)


def split(text: str) -> list[str]:
    """Split at commas that stand outside brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for position, char in enumerate(text):
        quoted ^= char in "'\""
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0 and not quoted:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


@functools.cache
def _argument(part: str, keyword_only: bool) -> Argument:
    match = _ARG.match(part)
    if match is None:
        raise ValueError(f"cannot read argument {part!r} of a schema line")
    kind, alias = match["type"], _ALIAS.search(match["type"])
    bare = _ALIAS.sub("", kind)
    listed = re.search(r"\[(\d*)\]", bare)
    head = bare.split("[")[0]
    length = int(listed[1]) if listed and listed[1] else 0
    default = REQUIRED if match["default"] is None else value(match["default"])
    return Argument(
        name=match["name"],
        type=head.rstrip("?"),
        optional=bare.endswith("?"),
        listed=listed is not None,
        length=length,
        default=(default,) * length if length and default.__class__ is int else default,
        keyword_only=keyword_only,
        alias=alias[1] if alias else "",
        writes=bool(alias and alias[2]),
        optional_items=listed is not None and head.endswith("?"),
    )


def value(text: str) -> Any:
    """A default as Python sees it: numbers, words, quoted strings and bracketed lists; other words stay strings."""
    text = text.strip()
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("["):
        return tuple(value(item) for item in split(text[1:-1]))
    if text[:1] in "'\"":
        return text[1:-1]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
