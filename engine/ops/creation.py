"""Tensors out of nothing: empty, zeros, ones, full, arange and their ``_like`` and ``new_`` forms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.device import CPU, device
from stridescope.engine.devices.registry import device_at
from stridescope.engine.devices.streams import current_device_index, current_stream
from stridescope.engine.autograd.leaf import require_grad
from stridescope.engine.dispatch.op import define
from stridescope.engine.dtype import BOOL, INTEGER, default_float, dtype, int64, of_number
from stridescope.engine.layout import dense_strides_like
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, canonical, fresh

_OPTIONS = (
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "bool? requires_grad=False"
)


def place_of(on: device | None) -> device:
    """The device of a factory's ``device=``; ``cuda`` without an index is the current one."""
    if on is None:
        return DefaultDevice.device
    return device("cuda", current_device_index()) if on.type == "cuda" and on.index is None else on


class DefaultDevice:
    """What ``torch.set_default_device`` changes."""

    device: device = CPU


def made(array: Array, kind: dtype, on: device | None, requires_grad: bool | None) -> Tensor:
    """A factory's result."""
    tensor = fresh(canonical(array), kind, place_of(on))
    if requires_grad:
        require_grad(tensor)
    return tensor


def checked(size: Sequence[int]) -> tuple[int, ...]:
    """The sizes, or RuntimeError when one is negative."""
    for dim in size:
        if dim < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {dim}: {list(size)}")
    return tuple(size)


def _check_room(nbytes: int, on: device) -> None:
    """Let a cuda device refuse what it can never hold, before the host makes the values."""
    if on.type == "cuda":
        gpu = device_at(on.index or 0)
        if nbytes > gpu.properties.total_memory:
            gpu.allocator.malloc(nbytes, current_stream(gpu.index))


def _filled(size: Sequence[int], value: Any, kind: dtype | None, on: device | None, grad: bool | None) -> Tensor:
    kind = kind or default_float()
    _check_room(math.prod(checked(size)) * kind.itemsize, place_of(on))
    array = np.zeros(checked(size), kind.np) if value == 0 else np.full(checked(size), value, kind.np)
    return made(array, kind, on, grad)


def _empty(size: Sequence[int], dtype: Any, layout: Any, device: Any, pin_memory: Any, requires_grad: Any) -> Tensor:
    # Zeros, not leftovers: a recording must not differ from run to run.
    return _filled(size, 0, dtype, device, requires_grad)


def _full(size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, grad: Any) -> Tensor:
    return _filled(size, fill_value, dtype or of_number(fill_value), device, grad)


empty = define(
    f"empty.memory_format(SymInt[] size, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    doc="A tensor whose contents nobody set; here always zeros.",
    run=lambda size, dtype, layout, device, pin_memory, requires_grad, memory_format: _empty(
        size, dtype, layout, device, pin_memory, requires_grad
    ),
)
zeros = define(f"zeros(SymInt[] size, {_OPTIONS}) -> Tensor", doc="All zeros.", run=_empty)
ones = define(
    f"ones(SymInt[] size, {_OPTIONS}) -> Tensor",
    doc="All ones.",
    run=lambda size, dtype, layout, device, pin_memory, grad: _filled(size, 1, dtype, device, grad),
)
full = define(f"full(SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor", doc="One value everywhere.", run=_full)


def _like(self: Tensor, value: Any, kind: dtype | None, on: device | None, grad: bool | None) -> Tensor:
    from stridescope.engine.dispatch.run import laid_out

    kind = kind or self.dtype
    array = np.full(self._array.shape, value, kind.np)
    strides = dense_strides_like(self._array.shape, self.strides)
    tensor = fresh(laid_out(array, strides), kind, place_of(on) if on else self.device)
    if grad:
        require_grad(tensor)
    return tensor


for _name, _value in (("empty_like", 0), ("zeros_like", 0), ("ones_like", 1)):
    define(
        f"{_name}(Tensor self, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
        doc=f"{_name.split('_')[0].capitalize()} in the shape, dtype and layout of another tensor.",
        run=lambda self, dtype, layout, device, pin, grad, memory_format, value=_value: _like(
            self, value, dtype, device, grad
        ),
        samples=[((3, 4),)],
        method=False,
    )
define(
    f"full_like(Tensor self, Scalar fill_value, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    doc="One value in the shape, dtype and layout of another tensor.",
    run=lambda self, fill_value, dtype, layout, device, pin, grad, memory_format: _like(
        self, fill_value, dtype, device, grad
    ),
    samples=[((3, 4), 2.0)],
    method=False,
)

for _name, _value in (("new_empty", 0), ("new_zeros", 0), ("new_ones", 1)):
    define(
        f"{_name}(Tensor self, SymInt[] size, {_OPTIONS}) -> Tensor",
        doc=f"{_name.split('_')[1].capitalize()} with the dtype and device of another tensor.",
        run=lambda self, size, dtype, layout, device, pin, grad, value=_value: _filled(
            size, value, dtype or self.dtype, device or self.device, grad
        ),
        samples=[((3, 4), (2,))],
        function=False,
    )
define(
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor",
    doc="One value everywhere, with the dtype and device of another tensor.",
    run=lambda self, size, fill_value, dtype, layout, device, pin, grad: _filled(
        size, fill_value, dtype or self.dtype, device or self.device, grad
    ),
    samples=[((3, 4), (2,), 1.5)],
    function=False,
)


def _arange(start: Any, end: Any, step: Any, kind: dtype | None, on: device | None, grad: bool | None) -> Tensor:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if kind is None:
        whole = all(of_number(v).category in (BOOL, INTEGER) for v in (start, end, step))
        kind = int64 if whole else default_float()
    count = math.ceil((end - start) / step)
    wide = np.int64 if kind.category == INTEGER else np.float64
    array = (wide(start) + np.arange(count, dtype=wide) * wide(step)).astype(kind.np)
    return made(array, kind, on, grad)


define(
    f"arange(Scalar end, {_OPTIONS}) -> Tensor",
    doc="0, 1, … up to end.",
    run=lambda end, dtype, layout, device, pin, grad: _arange(0, end, 1, dtype, device, grad),
)
define(
    f"arange.start(Scalar start, Scalar end, {_OPTIONS}) -> Tensor",
    doc="start, start + 1, … up to end.",
    run=lambda start, end, dtype, layout, device, pin, grad: _arange(start, end, 1, dtype, device, grad),
)
define(
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor",
    doc="start, start + step, … up to end.",
    run=lambda start, end, step, dtype, layout, device, pin, grad: _arange(start, end, step, dtype, device, grad),
)


def tensor(
    data: Any,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """``torch.tensor``: a new leaf holding a copy of numbers, nested lists, NumPy arrays or a tensor."""
    from stridescope.engine.ops.from_data import array_of

    array, kind = array_of(data, dtype)
    on = None if device is None else _device(device)
    return _from_data.call(array, kind, on if on is not None else _home(data), requires_grad)  # type: ignore[no-any-return]


def _device(text: Any) -> device:
    return device(text)


def _home(data: Any) -> device | None:
    return data.device if isinstance(data, Tensor) else None


_from_data = define(
    "tensor(NdArray data, ScalarType dtype, Device? device=None, bool? requires_grad=False) -> Tensor",
    doc="A new tensor holding a copy of the data.",
    run=lambda array, kind, on, grad: made(array, kind, on, grad),
    function=False,
)
