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
from stridescope.engine.dispatch.pinned import pinned_block
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dispatch.run import flattened
from stridescope.engine.events import journal
from stridescope.engine.tensor import Tensor

# Ops that multiply and add along an inner dim: each result costs twice its length.
PRODUCTS = frozenset({"mm", "bmm", "mv", "dot", "matmul", "addmm", "addmv", "baddbmm", "linear", "vdot"})
# Ops that copy, with the positions of what is copied and of non_blocking.
COPIES = {"copy_": (1, 2), "_to_copy": (0, 3)}
# Ops whose results are as long as their values say: the host has to wait for that number.
COUNTED = frozenset(
    {"nonzero", "argwhere", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
     "repeat_interleave", "bincount"}
)  # fmt: skip
COUNT_BYTES = 8
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
        if (places := COPIES.get(op.name)) is not None:
            _queue_copy(op, args[places[0]], out, bool(args[places[1]]))
        else:
            _queue(op, [a for a in flattened(args) if isinstance(a, Tensor)], _results(out))
    return out


def _results(out: Any) -> list[Tensor]:
    return [t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, Tensor)]


def _queue(op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    source = next((t for t in inputs if t.device.type == "cuda"), None)
    target = next((t for t in outputs if t.device.type == "cuda"), None)
    if target is not None and source is None and inputs:
        _copy(target, inputs[0], outputs, False)
    elif target is not None:
        gpu = _gpu(target)
        gpu.launch(op.name, _nbytes(inputs), _nbytes(outputs), _operations(op, inputs, outputs))
        if op.name in COUNTED or (op.name == "index" and any(t.dtype.name == "bool" for t in inputs[1:])):
            gpu.copy("device to host", COUNT_BYTES)
    elif source is not None:  # a value that Python asks for
        _gpu(source).copy("device to host", _nbytes(outputs) or source.dtype.itemsize)


def _queue_copy(op: Op, source: Any, target: Tensor, non_blocking: bool) -> None:
    if not isinstance(source, Tensor) or source.device == target.device or "cuda" not in (
        source.device.type, target.device.type,
    ):  # fmt: skip
        _queue(op, [source] if isinstance(source, Tensor) else [], [target])
    elif source.device.type == target.device.type:
        _gpu(target).copy("device to device", _nbytes([target]))
    else:
        _copy(target, source, [target], non_blocking)


def _copy(target: Tensor, source: Tensor, outputs: list[Tensor], non_blocking: bool) -> None:
    """Between host and device. With pinned memory a copy only joins the queue, and the memory is kept until then."""
    to_device = target.device.type == "cuda"
    gpu, block = (_gpu(target), pinned_block(source)) if to_device else (_gpu(source), pinned_block(target))
    kind = "host to device" if to_device else "device to host"
    gpu.copy(kind, _nbytes(outputs), pinned=block is not None, non_blocking=non_blocking)
    if block is not None:
        gpu.host_allocator.record_stream(block, current_stream(gpu.index))


def read_back(tensor: Tensor) -> None:
    """Python asks for the values of a tensor: from a GPU they are copied, and the host waits for them."""
    if tensor.device is not CPU and tensor.device.type == "cuda":
        _gpu(tensor).copy("device to host", tensor._array.size * tensor.dtype.itemsize)


def _gpu(tensor: Tensor) -> SimulatedGPU:
    return device_at(tensor.device.index or 0)


def _nbytes(tensors: Sequence[Tensor]) -> int:
    return sum(t._array.size * t.dtype.itemsize for t in tensors if t.device is not CPU or t._array.ndim)


def _operations(op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> int:
    results = sum(t._array.size for t in outputs)
    inner = inputs[-1]._array.shape[-2:][0] if op.name in PRODUCTS and inputs and inputs[-1]._array.ndim else 0
    return results * 2 * inner if inner else max(results, math.prod(inputs[0]._array.shape) if inputs else 0)
