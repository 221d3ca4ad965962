"""Methods that PyTorch writes out in each of its classes, and that stand once in a class of ours.

What Python says of wrong arguments names the class that the method was written in
(``Conv2d.__init__() missing 3 required …``), and so does ``inspect``. Each public class therefore gets a copy of the
marked methods that it inherits, under its own name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

_shared: set[Callable[..., Any]] = set()


def in_each(method: Method) -> Method:
    """Mark a method that PyTorch has in each of the public classes that inherit it here."""
    _shared.add(method)
    return method


def write_out(kind: type) -> None:
    """Give a class its own copies of the marked methods that it inherits."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if method in _shared and name not in vars(kind):
            setattr(kind, name, _copied(method, f"{kind.__qualname__}.{name}"))


def _copied(method: FunctionType, qualname: str) -> FunctionType:
    copy = FunctionType(method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__)
    copy.__qualname__, copy.__doc__ = qualname, method.__doc__
    copy.__kwdefaults__, copy.__annotations__ = method.__kwdefaults__, method.__annotations__
    return copy
