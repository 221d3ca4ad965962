"""Functions that are not to be compiled, or that are to be one node."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stridescope.engine.torch._dynamo import exc
from stridescope.engine.torch._dynamo.recorder import Recorder
from stridescope.engine.torch._dynamo.strict import Strict
from stridescope.engine.torch.nn.modules.module import Module


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True) -> Any:
    """The function or module, run as it is written even inside of a compiled one: the graph ends there."""
    if fn is None:
        return lambda given: disable(given, recursive, reason=reason)
    if isinstance(fn, Module):
        fn.forward = disable(fn.forward, recursive, reason=reason)  # type: ignore[method-assign]
        return fn

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = Recorder.current
        if recorder is None or recorder.busy:
            if Strict.depth:
                raise exc.Unsupported(exc.disabled_call(fn, reason))
            return fn(*args, **kwargs)
        recorder.end_graph(exc.disabled_call(fn, reason))
        with recorder.outside():
            return fn(*args, **kwargs)

    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    return call


def allow_in_graph(fn: Any) -> Any:
    """A function whose calls become one node of a graph."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(each) for each in fn]

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = Recorder.current
        if recorder is None or recorder.busy:
            return fn(*args, **kwargs)
        return recorder.record(call, fn, args, kwargs)

    made: Callable[..., Any] = call
    return made
