"""Backends by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

# They differ in how fast PyTorch computes, not in what: here all run the program as it is written.
EAGER = ("aot_eager", "cudagraphs", "eager", "inductor", "onnxrt", "openxla", "tvm")
_REGISTERED: dict[str, Callable[..., Any]] = {}


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Give a backend a name for ``torch.compile(backend="…")``; also a decorator."""
    if compiler_fn is None:
        return lambda given: register_backend(given, name, tags)
    _REGISTERED[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


def registered(name: str) -> Callable[..., Any] | None:
    """The backend that a program registered under a name."""
    return _REGISTERED.get(name)


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """The names of the backends that one would use."""
    return sorted((*("cudagraphs", "inductor", "onnxrt", "openxla", "tvm"), *_REGISTERED))


def lookup_backend(compiler_fn: Any) -> Any:
    """The backend of a name; those that run a graph as it is give its ``forward``."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    return _REGISTERED.get(compiler_fn) or (lambda module, inputs: module.forward)
