"""Where a tensor comes from, as the name of a graph's input: an argument, a module's parameter, a global variable."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.modules.module import Module

Named = Iterator[tuple[str, Tensor, bool]]
_DEEPEST = 6  # levels of containers that are looked into


def _tidy(name: str) -> str:
    return re.sub(r"\W+", "_", name)


def _in(value: Any, name: str, depth: int = 0) -> Named:
    """The tensors in a value, with their names and whether they are a module's."""
    if isinstance(value, Tensor):
        yield f"{name}_", value, False
    elif isinstance(value, Module):
        yield from _of_module(value, name)
    elif depth < _DEEPEST and isinstance(value, dict):
        for key, item in value.items():
            yield from _in(item, f"{name}_{_tidy(str(key))}", depth + 1)
    elif depth < _DEEPEST and isinstance(value, (list, tuple)):
        for place, item in enumerate(value):
            yield from _in(item, f"{name}_{place}", depth + 1)


def _of_module(module: Module, name: str) -> Named:
    for key, parameter in module._parameters.items():
        if parameter is not None:
            yield f"{name}_parameters_{_tidy(key)}_", parameter, True
    for key, buffer in module._buffers.items():
        if buffer is not None:
            yield f"{name}_buffers_{_tidy(key)}_", buffer, True
    for key, child in module._modules.items():
        if child is not None:
            yield from _of_module(child, f"{name}_modules_{_tidy(key)}")


def _bound(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return {f"args_{place}": value for place, value in enumerate(args)} | kwargs
    return dict(bound.arguments)


def named_tensors(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, tuple[str, Tensor, bool]]:
    """By identity: the tensors that a function can reach, their names and whether they are a module's."""
    owner: Any
    if isinstance(function, Module):
        owner, inner = function, type(function).forward
    else:
        owner, inner = getattr(function, "__self__", None), getattr(function, "__func__", function)
    whole = args if owner is None else (owner, *args)
    places = [(f"L_{name}", value) for name, value in _bound(inner, whole, kwargs).items()]
    code = getattr(inner, "__code__", None)
    if code is not None:
        cells = getattr(inner, "__closure__", None) or ()
        free = zip(code.co_freevars, cells, strict=False)
        places += [(f"L_{name}", cell.cell_contents) for name, cell in free if _is_full(cell)]
        names = inner.__globals__
        places += [(f"G_{name}", names[name]) for name in code.co_names if name in names]
    found: dict[int, tuple[str, Tensor, bool]] = {}
    for start, value in places:
        for name, tensor, is_module in _in(value, start):
            found.setdefault(id(tensor), (name, tensor, is_module))
    return found


def _is_full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # nothing was put there yet
        return False
