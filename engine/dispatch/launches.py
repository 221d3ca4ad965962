"""Every op on ``cuda`` is work in a queue of its device: kernels and copies, with the time that they take there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine.device import CPU
from stridescope.engine.devices.registry import device_at, on_first_use
from stridescope.engine.devices.simulated import SimulatedGPU
from stridescope.engine.devices.streams import current_stream
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dispatch.run import flattened
from stridescope.engine.events import journal
from stridescope.engine.tensor import Tensor

# Ops that multiply and add along an inner dim: each result costs twice its length.
PRODUCTS = frozenset({"mm", "bmm", "mv", "dot", "matmul", "addmm", "addmv", "baddbmm", "linear", "vdot"})
# Ops that only take memory.
IDLE = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})


def watch_devices() -> None:
    """Queue the work of ops from the moment when a cuda device is first used; until then nothing costs anything."""
    on_first_use(_begin)


def _begin() -> None:
    if launching not in Interceptors.before:
        Interceptors.before.append(launching)
        journal.require_full(+1)


def launching(op: Op, call: Callable[..., Any], *args: Any) -> Any:
    """Do the op, then queue what it was on the device."""
    out = call(*args)
    if op.composite is None and op.view is None and op.name not in IDLE:
        _queue(op, [a for a in flattened(args) if isinstance(a, Tensor)], _results(out))
    return out


def _results(out: Any) -> list[Tensor]:
    return [t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, Tensor)]


def _queue(op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    source = next((t for t in inputs if t.device.type == "cuda"), None)
    target = next((t for t in outputs if t.device.type == "cuda"), None)
    if source is None and target is None:
        return
    if source is None and inputs and target is not None:
        _copy_to(_gpu(target), inputs[0], _nbytes(outputs))
    elif target is None and source is not None:
        # A value that Python asks for, or a copy into host memory: both wait for the queue.
        _gpu(source).copy("device to host", _nbytes(outputs) or source.dtype.itemsize)
    elif target is not None:
        _gpu(target).launch(op.name, _nbytes(inputs), _nbytes(outputs), _operations(op, inputs, outputs))


def _copy_to(gpu: SimulatedGPU, source: Tensor, nbytes: int) -> None:
    """From pinned memory the copy only joins the queue, and the memory is kept until it is done."""
    block = None if source._storage is None else source._storage.block
    gpu.copy("host to device", nbytes, pinned=block is not None)
    if block is not None:
        gpu.host_allocator.record_stream(block, current_stream(gpu.index))


def _gpu(tensor: Tensor) -> SimulatedGPU:
    return device_at(tensor.device.index or 0)


def _nbytes(tensors: Sequence[Tensor]) -> int:
    return sum(t._array.size * t.dtype.itemsize for t in tensors if t.device is not CPU or t._array.ndim)


def _operations(op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> int:
    results = sum(t._array.size for t in outputs)
    inner = inputs[-1]._array.shape[-2:][0] if op.name in PRODUCTS and inputs and inputs[-1]._array.ndim else 0
    return results * 2 * inner if inner else max(results, math.prod(inputs[0]._array.shape) if inputs else 0)
