"""Modules that are one function with kept arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.nn.modules.module import Module


class _Applied(Module):
    """A module that calls one function with its inputs and the arguments that it was made with.

    Attributes:
        _function: what ``forward`` calls.
        _passed: the attributes that follow the inputs, in order.
        _shown: what the printed form says, with attributes in braces; ``inplace`` is added when it is true.
    """

    _function: ClassVar[Callable[..., Any]]
    _passed: ClassVar[tuple[str, ...]] = ()
    _shown: ClassVar[str] = ""

    def _applied(self, *inputs: Any) -> Any:
        return type(self)._function(*inputs, *[getattr(self, name) for name in self._passed])

    def extra_repr(self) -> str:
        """The kept arguments."""
        text = self._shown.format(**{**self.__dict__, "self": self})
        if getattr(self, "inplace", False):
            return f"{text}, inplace=True" if text else "inplace=True"
        return text


class _AppliedToOne(_Applied):
    """An ``_Applied`` with a single input."""

    @in_each
    def forward(self, input: Any) -> Any:
        """Call the function."""
        return type(self)._function(input, *[getattr(self, name) for name in self._passed])
