"""Tensors out of nothing: empty, zeros, ones, full and their ``_like`` and ``new_`` forms; ``torch.tensor``."""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.leaf import require_grad
from stridescope.engine.device import CPU, META, DefaultDevice, device
from stridescope.engine.devices.registry import device_at
from stridescope.engine.devices.streams import current_device_index, current_stream
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.out_rule import FACTORY, RANGE, Gradients, Out
from stridescope.engine.dispatch.run import laid_out
from stridescope.engine.dtype import default_float, dtype, of_number
from stridescope.engine.layout import Layout, memory_format, strides_in_order
from stridescope.engine.ops.copying import format_strides, strides_of
from stridescope.engine.ops.determinism import unset
from stridescope.engine.ops.number_range import filler_of
from stridescope.engine.storage import Array, Storage
from stridescope.engine.tensor import Tensor, canonical, fresh, strided

OPTIONS = (
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "bool? requires_grad=False"
)


def place_of(on: device | None) -> device:
    """The device of a factory's ``device=``; ``cuda`` without an index is the current one."""
    if on is None:
        on = DefaultDevice.device
    return device("cuda", current_device_index()) if on.type == "cuda" and on.index is None else on


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


def _check_room(size: tuple[int, ...], kind: dtype, on: device) -> None:
    """Let a cuda device refuse what it can never hold, before the host makes the values."""
    if on.type == "cuda":
        gpu, nbytes = device_at(on.index or 0), math.prod(size) * kind.itemsize
        if nbytes > gpu.properties.total_memory:
            gpu.allocator.malloc(nbytes, current_stream(gpu.index))


def _filled(size: Sequence[int], value: Any, kind: dtype | None, on: device | None, grad: bool | None) -> Tensor:
    kind, on, size = kind or default_float(), place_of(on), checked(size)
    _check_room(size, kind, on)
    values = reserved(size, kind) if on is META else _values(size, value, kind)
    return made(values, kind, on, grad)


def reserved(size: tuple[int, ...], kind: dtype) -> Array:
    """Zeros that take no memory before they are used, and where the system allows no more than addresses: for meta."""
    nbytes = math.prod(size) * kind.itemsize
    if nbytes < _MOST_ZEROS or _RESERVE is None:
        return np.zeros(size, kind.np)
    return np.ndarray(size, kind.np, mmap.mmap(-1, nbytes, flags=_RESERVE))


_MOST_ZEROS = 1 << 28  # bytes: a system may refuse zeros of more than its memory
# MAP_NORESERVE has no name in every Python; where mmap takes no flags (Windows), there is no such mapping.
_RESERVE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000 if sys.platform == "linux" else None


def _values(size: Sequence[int], value: Any, kind: dtype) -> Array:
    if value.__class__ is int and value == 0:
        return np.zeros(size, kind.np)
    return np.full(size, filler_of(value, kind, math.prod(size)))


def _empty(size: Sequence[int], dtype: Any, layout: Any, device: Any, pin_memory: Any, requires_grad: Any) -> Tensor:
    # Zeros, not leftovers: a recording must not differ from run to run.
    return _filled(size, 0, dtype, device, requires_grad)


def _zeros(size: Sequence[int], *options: Any) -> Tensor:
    if size and min(size) < 0:
        raise RuntimeError("zeros: Dimension size must be non-negative.")
    return _empty(size, *options)


def _full(size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, grad: Any) -> Tensor:
    return _filled(size, fill_value, dtype or of_number(fill_value), device, grad)


def _formatted(
    size: Sequence[int], kind: dtype | None, on: device | None, grad: bool | None, asked: memory_format | None
) -> Tensor:
    """Zeros in a memory format."""
    if asked is None:
        return _filled(size, 0, kind, on, grad)
    return _strided(size, format_strides(checked(size), asked), kind or default_float(), on, grad)


def _strided(size: Sequence[int], stride: Sequence[int], kind: dtype, on: device | None, grad: bool | None) -> Tensor:
    """Zeros read by these strides, in just the memory that they reach."""
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    layout = Layout(checked(size), tuple(stride))
    if any(s < 0 for s in stride):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}"
        )  # fmt: skip
    storage = Storage(np.zeros(0 if 0 in layout.sizes else layout.extent(), kind.np))
    tensor = fresh(strided(storage, layout, kind), kind)
    tensor._storage = storage
    where = place_of(on)
    if where is not CPU:
        tensor = tensor.to(where)
    if grad:
        require_grad(tensor)
    return tensor


empty = define(
    f"empty.memory_format(SymInt[] size, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    doc="A tensor whose contents nobody set; here always zeros.",
    run=lambda size, dtype, layout, device, pin_memory, requires_grad, memory_format: unset(
        _formatted(size, dtype, device, requires_grad, memory_format)
    ),
    out=Out(counts=0, factory=True, gradients=Gradients.LEAVES),
)
zeros = define(f"zeros(SymInt[] size, {OPTIONS}) -> Tensor", doc="All zeros.", run=_zeros, out=FACTORY)
ones = define(
    f"ones(SymInt[] size, {OPTIONS}) -> Tensor",
    doc="All ones.",
    run=lambda size, dtype, layout, device, pin_memory, grad: _filled(size, 1, dtype, device, grad),
    out=FACTORY,
)
full = define(
    f"full(SymInt[] size, Scalar fill_value, {OPTIONS}) -> Tensor", doc="One value everywhere.", run=_full, out=RANGE
)
empty_strided = define(
    f"empty_strided(SymInt[] size, SymInt[] stride, {OPTIONS}) -> Tensor",
    doc="A tensor with sizes and strides of your own, contents nobody set.",
    run=lambda size, stride, dtype, layout, device, pin, grad: unset(
        _strided(size, stride, dtype or default_float(), device, grad)
    ),
)


def _permuted(
    size: Sequence[int], order: Sequence[int], kind: dtype | None, on: device | None, grad: bool | None
) -> Tensor:
    if len(size) != len(order):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for dim in order:
        if not 0 <= dim < len(size):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {dim} "
                               f"at index {list(order).index(dim)}).  NB: negative dims not currently supported; file "
                               "an issue if you want it.")  # fmt: skip
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    strides = strides_in_order(checked(size), tuple(reversed(order)))
    return _strided(size, strides, kind or default_float(), on, grad)


define(
    f"empty_permuted(SymInt[] size, int[] physical_layout, {OPTIONS}) -> Tensor",
    doc="A dense tensor whose dims lie in memory in the given order, contents nobody set.",
    run=lambda size, physical_layout, dtype, layout, device, pin, grad: unset(
        _permuted(size, physical_layout, dtype, device, grad)
    ),
)
define(
    f"scalar_tensor(Scalar s, {OPTIONS}) -> Tensor",
    doc="A number as a 0-d tensor of the default dtype.",
    run=lambda s, dtype, layout, device, pin, grad: _filled((), s, dtype, device, grad),
)


def _like(
    self: Tensor, value: Any, kind: dtype | None, on: device | None, grad: bool | None, asked: memory_format | None
) -> Tensor:
    kind = kind or self.dtype
    array = _values(self._array.shape, value, kind)
    strides = strides_of(self._array.shape, self.strides, asked)
    tensor = fresh(laid_out(array, strides), kind, place_of(on) if on else self.device)
    if grad:
        require_grad(tensor)
    return tensor


def _as_made(tensor: Tensor) -> Tensor:
    return tensor


LIKE: dict[str, Op] = {}
for _name, _value, _made in (("empty_like", 0, unset), ("zeros_like", 0, _as_made), ("ones_like", 1, _as_made)):
    LIKE[_name] = define(
        f"{_name}(Tensor self, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
        doc=f"{_name.split('_')[0].capitalize()} in the shape, dtype and layout of another tensor.",
        run=lambda self, dtype, layout, device, pin, grad, memory_format, value=_value, made=_made: made(
            _like(self, value, dtype, device, grad, memory_format)
        ),
        samples=[((3, 4),)],
        method=False,
    )
zeros_like = LIKE["zeros_like"]
define(
    f"full_like(Tensor self, Scalar fill_value, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    doc="One value in the shape, dtype and layout of another tensor.",
    run=lambda self, fill_value, dtype, layout, device, pin, grad, memory_format: _like(
        self, fill_value, dtype, device, grad, memory_format
    ),
    samples=[((3, 4), 2.0)],
    method=False,
)

for _name, _value, _made in (("new_empty", 0, unset), ("new_zeros", 0, _as_made), ("new_ones", 1, _as_made)):
    define(
        f"{_name}(Tensor self, SymInt[] size, {OPTIONS}) -> Tensor",
        doc=f"{_name.split('_')[1].capitalize()} with the dtype and device of another tensor.",
        run=lambda self, size, dtype, layout, device, pin, grad, value=_value, made=_made: made(
            _filled(size, value, dtype or self.dtype, device or self.device, grad)
        ),
        samples=[((3, 4), (2,))],
        function=False,
    )
define(
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, {OPTIONS}) -> Tensor",
    doc="One value everywhere, with the dtype and device of another tensor.",
    run=lambda self, size, fill_value, dtype, layout, device, pin, grad: _filled(
        size, fill_value, dtype or self.dtype, device or self.device, grad
    ),
    samples=[((3, 4), (2,), 1.5)],
    function=False,
)
define(
    f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, {OPTIONS}) -> Tensor",
    doc="A tensor with sizes and strides of your own, in the dtype and on the device of another.",
    run=lambda self, size, stride, dtype, layout, device, pin, grad: unset(
        _strided(size, stride, dtype or self.dtype, device or self.device, grad)
    ),
    function=False,
)


_from_data = define(
    "tensor(NdArray data, ScalarType dtype, Device? device=None, bool? requires_grad=False) -> Tensor",
    doc="A new tensor holding a copy of the data.",
    run=lambda array, kind, on, grad: made(array, kind, on, grad),
    function=False,
)


def from_values(array: Array, kind: dtype, on: device | None, requires_grad: bool) -> Tensor:
    """A new leaf of these values."""
    return _from_data.call(array, kind, on, requires_grad)  # type: ignore[no-any-return]
