"""``torch.cuda.CUDAGraph``: a run of kernels, captured once and launched again as a whole, with a pool of its own.

While a graph is captured its ops are computed, so that shapes and memory are right, but what they write into older
tensors is taken back at the end: a capture changes nothing, as on a GPU. ``replay()`` computes them again, in place.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.device import CPU
from stridescope.engine.devices.cuda_errors import capture_invalidated
from stridescope.engine.devices.registry import current_device, device_count
from stridescope.engine.devices.streams import DEFAULT_STREAM, current_stream
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.events import journal
from stridescope.engine.storage import Storage
from stridescope.engine.tensor import Scratch, Tensor, over
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.cuda.streams import Stream, StreamContext
from stridescope.engine.warn import warn

CAPTURE_ERROR_MODES = ("global", "thread_local", "relaxed")
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
            current_device().refuse_while_capturing()
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
        if not device_count():
            raise RuntimeError("Tried to instantiate dummy base class CUDAGraph")
        self._gpu, self._allocator = current_device(), current_device().allocator
        self._keeps_graph = keep_graph
        self._pool: tuple[int, int] | None = None
        self._capture: Capture | None = None
        self._steps: list[Step] | None = None
        self._debugged = False

    def capture_begin(
        self,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "global",
        check_input_liveness: bool = False,
    ) -> None:
        """Begin to capture; ``pool`` is that of another graph or a handle, to share memory with."""
        if capture_error_mode not in CAPTURE_ERROR_MODES:
            raise RuntimeError(
                "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got " + capture_error_mode
            )
        if self._capture is not None or self._steps is not None:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph. To capture a new graph, "
                               "create a new instance.")  # fmt: skip
        if current_stream(self._gpu.index) == DEFAULT_STREAM:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. "
                "(However, after capture, it's ok to replay them on the default stream.)"
            )
        self._pool = pool or (next(_numbers), 0)
        thread = threading.get_ident()
        self._allocator.begin_allocate_to_pool(self._pool, lambda stream: threading.get_ident() == thread)
        self._allocator.captures_underway += 1
        self._capture, self._gpu.capture_spoiled = Capture(), False
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
        if self._gpu.capture_spoiled:
            raise capture_invalidated()
        self._steps = capture.steps

    def instantiate(self) -> None:
        """Make a graph ready to be replayed, which ``keep_graph=True`` leaves to the first replay."""
        if self._steps is None:
            raise RuntimeError("capture_end() must have been called before calling instantiate")

    def raw_cuda_graph(self) -> int:
        """The runtime's own graph, of which the simulated device has none."""
        if not self._keeps_graph:
            raise RuntimeError(
                "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with keep_graph=true"
            )
        raise NotImplementedError("torch.cuda.CUDAGraph.raw_cuda_graph is not in Stridescope yet")

    def enable_debug_mode(self) -> None:
        """Let ``debug_dump`` say what the graph holds."""
        self._debugged = True

    def debug_dump(self, debug_path: str) -> None:
        """Write the graph's work to a file in the DOT language, one node for each op, in their order."""
        if not self._debugged or self._steps is None:
            warn("CUDA Graphs debug not enabled, set with [graph].enable_debug_mode()")
            return
        nodes = [f'  "{number}" [label="{step.op.name}"];' for number, step in enumerate(self._steps)]
        edges = [f'  "{number}" -> "{number + 1}";' for number in range(len(self._steps) - 1)]
        Path(debug_path).write_text("\n".join(["digraph dot {", *nodes, *edges, "}", ""]), encoding="utf-8")

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
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ) -> None:
        if graph.default_capture_stream is None:
            graph.default_capture_stream = Stream()
        self.cuda_graph, self.pool, self.capture_error_mode = cuda_graph, pool, capture_error_mode
        self.capture_stream = stream or graph.default_capture_stream
        self._stream_context = StreamContext(self.capture_stream)

    def __enter__(self) -> None:
        current_device().synchronize()
        current_device().allocator.empty_cache()
        current_device().host_allocator.empty_cache()
        self._stream_context.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self._stream_context.__exit__()
            raise

    def __exit__(self, *failure: object) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self._stream_context.__exit__()


for _made in (CUDAGraph, graph):
    _made.__module__ = "torch.cuda"


__getattr__ = missing_from("torch.cuda.graphs")
