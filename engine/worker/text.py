"""A value of the script as one short text, without running the script's own code.

What a value is, its type says: ``isinstance`` also asks for its ``__class__``, which a class may answer with code.

Numbers, strings and the builtin containers are written by us, item by item and never more than :data:`ROOM`
characters; a value of an unknown class is named by its type only, since its ``__repr__`` may hang, print or lie.
"""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

ROOM = 80  # the most characters of one text
ITEMS = 8  # the most items shown of one container
DEPTH = 3  # the deepest container that is opened
SHORT_INT = 1 << 256
ENGINE = "stridescope.engine."
TORCH_VALUES = frozenset({"Size", "dtype", "device", "layout", "memory_format"})  # their repr is ours and short


def short_text(value: object) -> str:
    """Return the text of a value, at most about :data:`ROOM` characters."""
    writer = WRITERS.get(type(value))
    text = writer(value, DEPTH) if writer is not None else _text(value, DEPTH)
    return text if len(text) <= ROOM else text[: ROOM - 1] + "…"


_tensor_class: list[type] = []  # once it is loaded


def tensor_of(value: object) -> Any | None:
    """Return the value when it is a tensor of the engine, else None; imports nothing."""
    if not _tensor_class:
        # Code of the script that runs in the midst of an import, such as its own finder, meets a module half made.
        if (found := getattr(sys.modules.get("stridescope.engine.tensor"), "Tensor", None)) is None:
            return None
        _tensor_class.append(found)
    return value if issubclass(type(value), _tensor_class[0]) else None


_module_class: list[type] = []  # likewise


def module_of(value: object) -> Any | None:
    """Return the value when it is a ``torch.nn.Module`` of the engine, else None; imports nothing."""
    if not _module_class:
        if (found := getattr(sys.modules.get("stridescope.engine.torch.nn.modules.module"), "Module", None)) is None:
            return None
        _module_class.append(found)
    return value if issubclass(type(value), _module_class[0]) else None


def _text(value: object, depth: int) -> str:
    kind = type(value)
    writer = WRITERS.get(kind)
    if writer is not None:
        return writer(value, depth)
    if (tensor := tensor_of(value)) is not None:
        return f"{kind.__name__}{list(tensor.shape)}"
    if kind.__module__ == "numpy" and hasattr(value, "shape"):
        return f"{kind.__name__}{list(value.shape)}"
    if issubclass(kind, type):
        return f"<class {value.__name__}>"  # type: ignore[attr-defined]
    if kind.__name__ in TORCH_VALUES and kind.__module__.startswith(("torch", "stridescope.engine")):
        return repr(value)
    return _derived(value, kind, depth) or f"<{kind.__name__}>"


def _derived(value: Any, kind: type, depth: int) -> str:
    """Return the text of a value whose class derives from a builtin container, read past its own methods."""
    if issubclass(kind, dict):
        return f"{kind.__name__}({_mapping(dict(itertools.islice(dict.items(value), ITEMS)), depth)})"
    for base in (list, tuple, set, frozenset):
        if issubclass(kind, base):
            return f"{kind.__name__}({WRITERS[base](base(itertools.islice(base.__iter__(value), ITEMS)), depth)})"
    return ""


def _integer(value: Any, _: int) -> str:
    return repr(value) if -SHORT_INT < value < SHORT_INT else f"<int of {value.bit_length()} bits>"


def _string(value: Any, _: int) -> str:
    return repr(value) if len(value) < ROOM else repr(value[:ROOM]) + "…"


def _sequence(opening: str, closing: str) -> Callable[[Any, int], str]:
    """Return a writer of a container whose items stand between two brackets."""

    def write(value: Any, depth: int) -> str:
        if not depth:
            return f"{opening}…{closing}"
        inside = _joined((_text(item, depth - 1) for item in itertools.islice(value, ITEMS)), len(value))
        lonely = "," if opening == "(" and len(value) == 1 else ""
        return f"{opening}{inside}{lonely}{closing}"

    return write


def _mapping(value: Mapping[Any, Any], depth: int) -> str:
    if not depth:
        return "{…}"
    pairs = itertools.islice(value.items(), ITEMS)
    return "{" + _joined((f"{_text(k, depth - 1)}: {_text(v, depth - 1)}" for k, v in pairs), len(value)) + "}"


def _joined(parts: Iterable[str], total: int) -> str:
    """Join the first parts of a container of ``total`` items, saying how many there are when some are left out."""
    kept: list[str] = []
    left_out = f"… {total} items"
    room = ROOM - len(left_out) - 2  # the brackets
    for part in parts:
        room -= len(part) + 2
        if room < 0 and kept:
            break
        kept.append(part)
    return ", ".join(kept) if len(kept) == total else ", ".join([*kept, left_out])


def _plain(value: object, _: int) -> str:
    return repr(value)


def _function(value: Any, _: int) -> str:
    return f"<function {value.__name__}>"


def _method(value: types.MethodType, _: int) -> str:
    return f"<method {getattr(value.__func__, '__qualname__', '?')}>"


def _module(value: types.ModuleType, _: int) -> str:
    name = str(value.__dict__.get("__name__", "?"))
    return f"<module {name.removeprefix(ENGINE)}>"  # torch is torch, wherever it stands


WRITERS: dict[type, Callable[[Any, int], str]] = {
    int: _integer,
    float: _plain,
    complex: _plain,
    bool: _plain,
    type(None): _plain,
    type(...): _plain,
    range: _plain,
    str: _string,
    bytes: _string,
    bytearray: _string,
    list: _sequence("[", "]"),
    tuple: _sequence("(", ")"),
    set: _sequence("{", "}"),
    frozenset: _sequence("frozenset({", "})"),
    dict: _mapping,
    types.FunctionType: _function,
    types.BuiltinFunctionType: _function,
    types.MethodType: _method,
    types.ModuleType: _module,
}
