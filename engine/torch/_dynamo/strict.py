"""Running a function as it is written, and refusing what would end a graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._dynamo import exc
from stridescope.engine.torch._watched_calls import VALUES, watched

_ALLOWED = (
    "item",
    "__float__",
    "__int__",
    "__index__",
    "numpy",
    "__array__",
    "__complex__",
    "register_hook",
    "__iter__",
)


class Strict:
    """Whether one whole graph is asked for, while a function runs."""

    depth = 0


@contextlib.contextmanager
def one_graph() -> Iterator[None]:
    """Raise Unsupported where something in the block would end a graph."""
    inside = False

    def watch(
        target: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], method: str = ""
    ) -> Any:
        nonlocal inside
        if not inside and method in VALUES and method not in _ALLOWED and isinstance(args[0], Tensor):
            raise exc.Unsupported(exc.asked(method))
        before, inside = inside, True
        try:
            return run(*args, **kwargs)
        finally:
            inside = before

    Strict.depth += 1
    try:
        with watched(watch):
            yield
    finally:
        Strict.depth -= 1
