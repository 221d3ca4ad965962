"""What PyTorch has and Stridescope has not: asking for it says so by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

FUNCTIONS = ("compile", "export", "hub", "sparse_coo_tensor", "sparse_csr_tensor", "quantize_per_tensor")


def refusing(module: str, name: str) -> Callable[..., NoReturn]:
    """A function that raises NotImplementedError when it is called."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{module}.{name} is not in Stridescope yet")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def attribute_of(module: str) -> Callable[[str], NoReturn]:
    """The ``__getattr__`` of a module that is not here: any name raises NotImplementedError."""

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("__"):  # Python itself asks for these
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        raise NotImplementedError(f"{module}.{name} is not in Stridescope yet")

    return __getattr__
