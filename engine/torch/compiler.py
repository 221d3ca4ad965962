"""``torch.compile`` and ``torch.compiler``: scripts that compile run as they are written, op by op.

Compiling changes how fast PyTorch computes, not what; and here every op is to be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.warn import warn_once

EAGER = "torch.compile: Stridescope runs the model as it is written, op by op; nothing is compiled"
BACKENDS = ("aot_eager", "cudagraphs", "eager", "inductor", "onnxrt", "openxla", "tvm")


class OptimizedModule(Module):
    """What ``torch.compile`` gives for a module: a wrapper whose state lies under ``_orig_mod.``."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        super().__setattr__("_orig_mod", mod)

    @property
    def training(self) -> bool:
        """Whether the module trains."""
        return "_orig_mod" in self._modules and bool(self._orig_mod.training)

    @training.setter
    def training(self, mode: bool) -> None:
        """``Module.__init__`` sets it before there is a module; later ``__setattr__`` hands it on."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", ()):
            setattr(self._orig_mod, name, value)
        else:
            super().__setattr__(name, value)


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """The function itself, or the module in an :class:`OptimizedModule`; also a decorator with or without options.

    Raises:
        NotImplementedError: ``backend`` is a function: it would be handed a captured graph.
        RuntimeError: there is no backend of this name, or both ``mode`` and ``options`` are given.
    """
    if model is None:
        return lambda given: compile(
            given, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if callable(backend):
        raise NotImplementedError("torch.compile with a backend of your own is not in Stridescope yet")
    if backend not in BACKENDS:
        raise RuntimeError(f"Invalid backend: {backend!r}, choose one of {', '.join(BACKENDS)}.")
    if disable:
        return model
    warn_once(EAGER)
    return OptimizedModule(model) if isinstance(model, Module) else model


def is_compiling() -> bool:
    """Always False."""
    return False


def is_dynamo_compiling() -> bool:
    """Always False."""
    return False


def is_exporting() -> bool:
    """Always False."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A decorator that leaves the function as it is: nothing is compiled anyway."""
    return fn if fn is not None else lambda given: given


def reset() -> None:
    """There is nothing compiled to forget."""


__getattr__ = attribute_of("torch.compiler")
