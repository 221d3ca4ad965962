"""``torch.cuda.CUDAGraph``: a run of kernels, captured once and launched again as a whole, with a pool of its own.

While a graph is captured its ops are computed, so that shapes and memory are right, but what they write into older
tensors is taken back at the end: a capture changes nothing, as on a GPU. ``replay()`` computes them again, in place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.device import CPU
from stridescope.engine.devices.registry import current_device
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.events import journal
from stridescope.engine.storage import Storage
from stridescope.engine.tensor import Scratch, Tensor, over
from stridescope.engine.torch.cuda.streams import Stream, StreamContext

_numbers = itertools.count(1)


@dataclasses.dataclass(slots=True)
class Step:
    """One captured op, with tensors that read the same memory as the script's but hold no block of the allocator."""

    op: Op
    arguments: tuple[Any, ...]
    outputs: tuple[Tensor, ...]


class Capture:
    """What the dispatcher tells while a graph is being captured."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        # Weak, so that what the script drops gives its block back during the capture too.
        self._twins: weakref.WeakKeyDictionary[Storage, Storage] = weakref.WeakKeyDictionary()
        self._made: weakref.WeakSet[Storage] = weakref.WeakSet()
        self._before: dict[Storage, Any] = {}

    def __call__(self, op: Op, call: Callable[..., Any], *args: Any) -> Any:
        """Do an op and remember it; raises RuntimeError for what a capture cannot hold."""
        if op.composite is not None or op.view is not None:
            return call(*args)
        if Scratch.depth:
            raise RuntimeError(f"{op.name}() with out= cannot be captured here: write the in-place form instead")
        if op.schema.writes and args[0].device is not CPU:
            self._keep_old_values(args[0])
        out = call(*args)
        outputs = tuple(t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, Tensor))
        if any(t.device is not CPU for t in _tensors(args)) and not any(t.device is not CPU for t in outputs):
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        if any(t.device is not CPU for t in outputs):
            if not op.schema.writes:
                self._made.update(t.storage_ for t in outputs)
            self.steps.append(Step(op, self._twin_of(args), tuple(self._twin_of(t) for t in outputs)))
        return out

    def _keep_old_values(self, target: Tensor) -> None:
        storage = target.storage_
        if storage not in self._before and storage not in self._made:
            self._before[storage] = storage.raw.copy()

    def take_back(self) -> None:
        """Undo what the capture wrote into tensors that were there before it."""
        for storage, values in self._before.items():
            storage.raw[...] = values

    def _twin_of(self, value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(self._twin_of(item) for item in value)
        if not isinstance(value, Tensor):
            return value
        original = value.storage_
        if original not in self._twins:
            self._twins[original] = Storage(original.owner, original.device)
        return over(self._twins[original], value.layout_, value.dtype)


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)


class CUDAGraph:
    """A captured graph: ``capture_begin``, the work, ``capture_end``, then ``replay`` as often as wanted."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._allocator = current_device().allocator
        self._pool: tuple[int, int] | None = None
        self._capture: Capture | None = None
        self._steps: list[Step] | None = None

    def capture_begin(self, pool: tuple[int, int] | None = None, capture_error_mode: str = "global") -> None:
        """Begin to capture; ``pool`` is that of another graph or a handle, to share memory with."""
        if self._capture is not None or self._steps is not None:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph. To capture a new graph, "
                               "create a new instance.")  # fmt: skip
        self._pool = pool or (next(_numbers), 0)
        thread = threading.get_ident()
        self._allocator.begin_allocate_to_pool(self._pool, lambda stream: threading.get_ident() == thread)
        self._allocator.captures_underway += 1
        self._capture = Capture()
        Interceptors.before.append(self._capture)
        journal.require_full(+1)

    def capture_end(self) -> None:
        """End the capture."""
        capture, self._capture = self._capture, None
        if capture is None or self._pool is None:
            raise RuntimeError("capture_end() without a preceding capture_begin()")
        journal.require_full(-1)
        Interceptors.before.remove(capture)
        self._allocator.captures_underway -= 1
        self._allocator.end_allocate_to_pool(self._pool)
        capture.take_back()
        self._steps = capture.steps

    def replay(self) -> None:
        """Do the captured work again, on the memory that it was captured with."""
        if self._steps is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        with no_grad():
            for step in self._steps:
                _again(step)

    def reset(self) -> None:
        """Forget the work; the pool gives its memory back with the next ``empty_cache``."""
        if self._pool is not None and self._capture is None:
            self._allocator.release_pool(self._pool)
            self._pool = self._steps = None

    def pool(self) -> tuple[int, int]:
        """The id of the graph's memory pool."""
        if self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool

    def __del__(self) -> None:
        if "_steps" in self.__dict__:
            self.reset()


def _again(step: Step) -> None:
    with Scratch():
        result = step.op.call(*step.arguments)
    if step.op.schema.writes:
        return
    for target, one in zip(step.outputs, result if isinstance(result, (tuple, list)) else (result,), strict=True):
        np.copyto(target._array, one._array)


class graph:
    """``with torch.cuda.graph(g):`` captures the block, on a stream of its own."""

    default_capture_stream: Stream | None = None

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "global"
    ) -> None:
        if graph.default_capture_stream is None:
            graph.default_capture_stream = Stream()
        self.cuda_graph, self.pool, self.capture_error_mode = cuda_graph, pool, capture_error_mode
        self.capture_stream = stream or graph.default_capture_stream
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> None:
        current_device().synchronize()
        gc.collect()
        current_device().allocator.empty_cache()
        self._closing.enter_context(StreamContext(self.capture_stream))
        self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        self._closing.callback(self.cuda_graph.capture_end)

    def __exit__(self, *failure: object) -> None:
        self._closing.close()


for _made in (CUDAGraph, graph):
    _made.__module__ = "torch.cuda"
