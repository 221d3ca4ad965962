"""Modules that are one function with kept arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from stridescope.engine.torch.nn.modules.module import Module


class Applied(Module):
    """A module that calls one function with its input and the arguments that it was made with.

    Attributes:
        function: what ``forward`` calls.
        passed: the attributes that follow the input, in order.
        shown: what the printed form says, with attributes in braces; ``inplace`` is added when it is true.
    """

    function: ClassVar[Callable[..., Any]]
    passed: ClassVar[tuple[str, ...]] = ()
    shown: ClassVar[str] = ""

    def __init__(self, **kept: Any) -> None:
        super().__init__()
        for name, value in kept.items():
            setattr(self, name, value)

    def forward(self, *inputs: Any) -> Any:
        """Call the function."""
        return type(self).function(*inputs, *[getattr(self, name) for name in self.passed])

    def extra_repr(self) -> str:
        """The kept arguments."""
        text = self.shown.format(**{**self.__dict__, "self": self})
        if getattr(self, "inplace", False):
            return f"{text}, inplace=True" if text else "inplace=True"
        return text
