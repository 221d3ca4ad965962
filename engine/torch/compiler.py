"""``torch.compile`` and ``torch.compiler``.

With PyTorch's own backends scripts run as they are written, op by op: compiling changes how fast PyTorch computes, not
what, and here every op is to be seen. A backend of one's own is handed graphs: :mod:`stridescope.engine.torch._dynamo`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from stridescope.engine.torch._dynamo.compiled import Compiled, Settings, forget, never_broken
from stridescope.engine.torch._dynamo.marking import allow_in_graph, disable
from stridescope.engine.torch._dynamo.named_backends import EAGER as EAGER_BACKENDS
from stridescope.engine.torch._dynamo.named_backends import list_backends, registered
from stridescope.engine.torch._dynamo.recorder import Recorder
from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.warn import warn_once

EAGER = "torch.compile: Stridescope runs the model as it is written, op by op; nothing is compiled"


class OptimizedModule(Module):
    """What ``torch.compile`` gives for a module: a wrapper whose state lies under ``_orig_mod.``."""

    def __init__(self, mod: Module, call: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.__dict__["_call"] = call or mod
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
        return self.__dict__["_call"](*args, **kwargs)

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
    """The function or module, compiled; also a decorator with or without options.

    A ``backend`` that is a function gets each graph and examples of its inputs, and gives what runs instead. With
    ``fullgraph`` what would end a graph is an error.

    Raises:
        RuntimeError: there is no backend of this name, or both ``mode`` and ``options`` are given.
    """
    if model is None:
        return lambda given: compile(
            given, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    own = backend if callable(backend) else registered(backend)
    if own is None and backend not in EAGER_BACKENDS:
        raise RuntimeError(f"Invalid backend: {backend!r}, choose one of {', '.join(EAGER_BACKENDS)}.")
    if disable:
        return model
    extra = {name: value for name, value in (("mode", mode), ("options", options)) if value is not None}
    call = _captured(model, Settings(own, fullgraph, dynamic, extra)) if own is not None else _eager(model, fullgraph)
    if isinstance(model, Module):
        return OptimizedModule(model, call)
    if call is not model:
        call._torchdynamo_orig_callable = model  # type: ignore[attr-defined]
    return call


def _captured(model: Callable[..., Any], settings: Settings) -> Callable[..., Any]:
    """The model, run through the graphs that a backend was handed."""
    compiled = Compiled(model, settings)

    def call(*args: Any, **kwargs: Any) -> Any:
        return compiled(*args, **kwargs)

    return call if isinstance(model, Module) else functools.wraps(model)(call)


def _eager(model: Callable[..., Any], fullgraph: bool) -> Callable[..., Any]:
    """The model as it is written."""
    warn_once(EAGER)
    return never_broken(model) if fullgraph else model


def is_compiling() -> bool:
    """Whether a function is being made into graphs."""
    return Recorder.current is not None


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Always False."""
    return False


def reset() -> None:
    """Forget every graph that was made."""
    forget()


def assume_constant_result(fn: Any) -> Any:
    """The function as it is."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """There are no CUDA graphs of compiled functions here."""


@contextlib.contextmanager
def set_stance(stance: str = "default", **options: Any) -> Iterator[None]:
    """What compiled functions do in the block; they do it as always."""
    yield


__getattr__ = attribute_of("torch.compiler")
__all__ = ["allow_in_graph", "disable", "list_backends"]
