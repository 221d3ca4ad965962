"""``torch._dynamo``: what stands behind ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._dynamo import exc
from stridescope.engine.torch._dynamo.compiled import counters, forget
from stridescope.engine.torch._dynamo.explaining import explain
from stridescope.engine.torch._dynamo.marking import allow_in_graph, disable
from stridescope.engine.torch._dynamo.named_backends import list_backends, lookup_backend, register_backend
from stridescope.engine.torch._dynamo.recorder import Recorder
from stridescope.engine.torch._dynamo.strict import Strict
from stridescope.engine.torch._elsewhere import file_of
from stridescope.engine.torch._not_yet import missing_from

config = SimpleNamespace(
    suppress_errors=False, verbose=False, cache_size_limit=8, recompile_limit=8, accumulated_cache_size_limit=256,
    capture_scalar_outputs=False, dynamic_shapes=True, assume_static_by_default=True, automatic_dynamic_shapes=True,
    error_on_recompile=False, optimize_ddp=True, guard_nn_modules=True, inline_inbuilt_nn_modules=True,
    capture_dynamic_output_shape_ops=False, specialize_int=False, log_level=0,
)  # fmt: skip


def reset() -> None:
    """Forget every graph that was made."""
    forget()


def graph_break(msg: str | None = None) -> None:
    """End the graph here; raises Unsupported where the function is to be one."""
    recorder = Recorder.current
    if recorder is not None and not recorder.busy:
        recorder.end_graph(exc.user_break(msg))
    elif Strict.depth:
        raise exc.Unsupported(exc.user_break(msg))


def mark_dynamic(t: Tensor, index: int | tuple[int, ...] | list[int], *, min: int | None = None,
                 max: int | None = None) -> None:  # fmt: skip
    """Let a dimension of an input be of any size."""
    places = index if isinstance(index, (tuple, list)) else (index,)
    t.__dict__.setdefault("_dynamo_dynamic_indices", set()).update(places)


maybe_mark_dynamic = mark_dynamic


def mark_static(t: Tensor, index: int | tuple[int, ...] | list[int] | None = None) -> None:
    """Let a dimension keep its size, which it does anyway."""
    t.__dict__.pop("_dynamo_dynamic_indices", None)


def is_compiling() -> bool:
    """Whether a function is being recorded."""
    return Recorder.current is not None


def optimize(backend: str | Callable[..., Any] = "inductor", *, nopython: bool = False, dynamic: bool | None = None,
             disable: bool = False) -> Callable[..., Any]:  # fmt: skip
    """The decorator behind ``torch.compile``."""
    from stridescope.engine.torch.compiler import compile

    return lambda function: compile(function, fullgraph=nopython, dynamic=dynamic, backend=backend, disable=disable)


utils = SimpleNamespace(counters=counters)
file_of(f"{__name__}.utils", vars(utils))
file_of(f"{__name__}.config", vars(config))
__getattr__ = missing_from("torch._dynamo", __name__)
__all__ = [
    "allow_in_graph", "config", "disable", "exc", "explain", "graph_break", "is_compiling", "list_backends",
    "lookup_backend", "mark_dynamic", "mark_static", "maybe_mark_dynamic", "optimize", "register_backend", "reset",
    "utils",
]  # fmt: skip
