"""Nested tuples, lists and dicts of tensors (``torch.utils._pytree``): their leaves, and their structure in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def _children(tree: Any) -> tuple[Sequence[Any], Callable[[list[Any]], Any]] | None:
    """What is directly inside, and how to build the same from other parts; None for a leaf."""
    if isinstance(tree, Mapping):
        kind: Any = type(tree)
        keys = list(tree)
        return list(tree.values()), lambda parts: kind(zip(keys, parts, strict=True))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        named: Any = type(tree)
        return tree, lambda parts: named(*parts)
    if isinstance(tree, (tuple, list)):
        return tree, type(tree)
    return None


def flatten(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The leaves of nested tuples, lists and dicts, and a function that puts leaves into the same places."""
    found = _children(tree)
    if found is None:
        return [tree], lambda leaves: leaves[0]
    children, rebuild = found
    flat = [flatten(child) for child in children]

    def unflatten(values: Sequence[Any]) -> Any:
        parts, start = [], 0
        for part, inner in flat:
            parts.append(inner(values[start : start + len(part)]))
            start += len(part)
        return rebuild(parts)

    return [leaf for part, _ in flat for leaf in part], unflatten


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same nest with ``function`` of each leaf."""
    leaves, unflatten = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves])


def structure(tree: Any, indent: int = 0) -> str:
    """The nest in words, as PyTorch prints a ``TreeSpec``: ``*`` stands for a leaf."""
    found = _children(tree)
    if found is None:
        return "*"
    context = list(tree) if isinstance(tree, Mapping) else type(tree) if hasattr(tree, "_fields") else None
    kind = "namedtuple" if hasattr(tree, "_fields") else type(tree).__name__
    parts = [structure(child, indent + 2) for child in found[0]]
    between = ",\n" + " " * (indent + 2)
    return f"TreeSpec({kind}, {context}, [{between.join(parts)}])"


def outline(tree: Any) -> str:
    """The nest in Python's own notation, with ``*`` for each leaf."""
    found = _children(tree)
    if found is None:
        return "*"
    parts = [outline(child) for child in found[0]]
    if isinstance(tree, Mapping):
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(tree, parts, strict=True)) + "}"
    if isinstance(tree, list):
        return f"[{', '.join(parts)}]"
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def spread(values: Any, tree: Any) -> list[Any] | None:
    """One of ``values`` for every leaf of ``tree``: one may stand for a whole branch; None where they do not fit."""
    inner = _children(values)
    if inner is None:
        return [values] * len(flatten(tree)[0])
    outer = _children(tree)
    if outer is None or len(inner[0]) != len(outer[0]) or isinstance(values, Mapping) != isinstance(tree, Mapping):
        return None
    parts = [spread(value, child) for value, child in zip(inner[0], outer[0], strict=True)]
    return None if any(part is None for part in parts) else [leaf for part in parts for leaf in part or ()]
