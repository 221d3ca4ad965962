"""A function bound to its tensor: what ``x.add`` is while it is not called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Bound:
    """A method bound to its tensor."""

    __slots__ = ("__self__", "function")

    def __init__(self, function: Callable[..., Any], instance: Any) -> None:
        self.function, self.__self__ = function, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with the tensor first."""
        return self.function(self.__self__, *args, **kwargs)

    @property
    def __name__(self) -> str:
        return self.function.__name__

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self.function.__doc__

    def __repr__(self) -> str:
        return f"<built-in method {self.function.__name__} of {type(self.__self__).__name__} object>"
