"""What the modules with parameters share: making tensors, and turning one number into one for each dim."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.torch._in_each import write_out
from stridescope.engine.torch.nn.parameter import Parameter


def empty(shape: Iterable[int], device: Any = None, dtype: Any = None) -> Any:
    """``torch.empty``."""
    return FUNCTIONS["torch"]["empty"](tuple(shape), device=device, dtype=dtype)


def parameter(shape: Iterable[int], device: Any = None, dtype: Any = None) -> Parameter:
    """An unfilled Parameter."""
    return Parameter(empty(shape, device, dtype))


def numbers(value: Any, dims: int) -> tuple[Any, ...]:
    """One number as one for each dim; a sequence as a tuple."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * dims


def named_as(place: str, scope: dict[str, Any]) -> None:
    """Let the classes of a module say PyTorch's module as theirs; the public ones get their own shared methods."""
    own = scope["__name__"]
    for value in list(scope.values()):
        if isinstance(value, type) and value.__module__ == own:
            value.__module__ = f"torch.nn.modules.{place}"
            if not value.__name__.startswith("_"):
                write_out(value)
