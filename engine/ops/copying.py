"""Copies: clone, contiguous, copy_ and conversions between dtypes and devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.autograd.blank import zeros
from stridescope.engine.device import CPU, META, device
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.overlap import refuse_internal_overlap, refuse_partial_overlap
from stridescope.engine.dispatch.pinned import pin
from stridescope.engine.dispatch.run import cast, laid_out, resolved, stored
from stridescope.engine.dtype import BY_NAME, bool_, dtype
from stridescope.engine.events import CopyMade, journal
from stridescope.engine.layout import (
    broadcast_shapes,
    channels_last,
    channels_last_3d,
    channels_last_strides,
    contiguous_format,
    contiguous_strides,
    dense_strides_like,
    is_channels_last,
    is_contiguous,
    memory_format,
    preserve_format,
    suggests_channels_last,
)
from stridescope.engine.tensor import Tensor, fresh
from stridescope.engine.warn import internal, warn_once


def strides_of(sizes: tuple[int, ...], strides: tuple[int, ...], asked: memory_format | None) -> tuple[int, ...]:
    """The strides of a new tensor in this memory format; None and preserve_format keep the order of ``strides``."""
    if asked is None or asked is preserve_format:
        return dense_strides_like(sizes, strides)
    return format_strides(sizes, asked)


def format_strides(sizes: tuple[int, ...], asked: memory_format | None) -> tuple[int, ...]:
    """Dense strides in a memory format that needs no example; raises RuntimeError for the wrong number of dims."""
    for name, rank in ((channels_last, 4), (channels_last_3d, 5)):
        if asked is name:
            if len(sizes) != rank:
                raise RuntimeError(f"required rank {rank} tensor to use {name.name} format")
            return channels_last_strides(sizes)
    if asked is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    return contiguous_strides(sizes)


def matches_format(tensor: Tensor, asked: memory_format | None) -> bool:
    """Whether the tensor already lies in memory as asked."""
    sizes = tensor._array.shape
    if asked is channels_last or asked is channels_last_3d:
        rank = 4 if asked is channels_last else 5
        return len(sizes) == rank and is_channels_last(sizes, tensor.strides)
    return is_contiguous(sizes, tensor.strides)


def copied(source: Tensor, reason: str, asked: memory_format | None = None) -> Tensor:
    """A copy of a tensor's elements in memory of its own, by default keeping the order of its dims."""
    if (emit := journal.emit) is not None:
        emit((CopyMade.code, source._array.nbytes, reason))
    array = resolved(source)
    if (asked is None or asked is contiguous_format) and source._plain and _is_row_major(array):
        return fresh(array.copy(), source.dtype)
    strides = strides_of(array.shape, source.strides, asked)
    return fresh(owned(array, strides), source.dtype, source.device)


def _is_row_major(array: Any) -> bool:
    """Whether a copy by NumPy lies as PyTorch's does; dims of size 0 and 1 may have any stride."""
    return array.flags.c_contiguous and 1 not in array.shape and bool(array.size)


def owned(array: Any, strides: tuple[int, ...]) -> Any:
    """The values in new memory with these strides."""
    item = array.itemsize
    memory = np.empty(array.size, array.dtype)
    buffer = memory if array.size else bytearray()
    result = np.ndarray(array.shape, array.dtype, buffer, 0, tuple(s * item for s in strides))
    if array.size:
        result[...] = array
    return result


clone = define(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    doc="A copy with a storage of its own.",
    run=lambda self, memory_format: copied(self, "clone", memory_format),
    grads={"self": lambda grad: grad},
    samples=[((3, 4),)],
)


def _contiguous(self: Tensor, memory_format: memory_format | None = None) -> Tensor:
    if matches_format(self, memory_format):
        return self
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return clone.call(self, memory_format or contiguous_format)  # type: ignore[no-any-return]


contiguous = define(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=None) -> Tensor(a)",
    doc="The tensor itself when it is row-major, else a row-major copy.",
    composite=_contiguous,
    samples=[((3, 4),)],
    function=False,
)


def _warn_of_imaginary(source: Tensor, kind: dtype) -> None:
    if source.dtype.is_complex and not kind.is_complex and kind is not bool_ and source._array.size:
        warn_once(
            internal("Casting complex values to real discards the imaginary part", "aten/src/ATen/native/Copy.cpp:307")
        )


def _same_place(self: Tensor, src: Any) -> bool:
    """Whether both read the same elements in the same way, so that there is nothing to copy."""
    if not isinstance(src, Tensor) or self._storage is None or src._storage is not self._storage:
        return False
    same = src.layout_ == self.layout_ and src.dtype is self.dtype
    return same and (src._conj, src._neg) == (self._conj, self._neg)


NO_DATA = "Cannot copy out of meta tensor; no data!"


def _copy_into(self: Tensor, src: Tensor, non_blocking: bool) -> Tensor:
    if self is src or _same_place(self, src):
        return self
    if isinstance(src, Tensor) and src._device is META and self._device is not META:
        raise NotImplementedError(NO_DATA)
    if not isinstance(src, Tensor):
        refuse_internal_overlap(self)
        self._array[...] = stored(self, cast(np.asarray(src), self.dtype))
        return self
    refuse_internal_overlap(self)
    refuse_partial_overlap(self, src)
    shape = self._array.shape
    if src._array.shape != shape:
        common = broadcast_shapes(shape, src._array.shape)
        if common != shape:
            raise RuntimeError(
                f"output with shape {list(shape)} doesn't match the broadcast shape {list(common)}"
            )  # fmt: skip
    if not self._array.size:
        return self
    _warn_of_imaginary(src, self.dtype)
    values = cast(resolved(src), self.dtype) if src.dtype is not self.dtype else resolved(src)
    self._array[...] = stored(self, values)
    return self


def _zeros(grad: Tensor) -> Tensor:
    return zeros(grad.shape, grad)


def _source_grad(grad: Tensor, src: dtype, src_device: device) -> Tensor:
    if grad.dtype.is_complex and not src.is_complex:
        grad = grad.real
    return grad.to(src_device, src)  # type: ignore[no-any-return]


copy_ = define(
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    doc="Writes src's elements into self.",
    run=_copy_into,
    node="CopyBackwards",
    grads={
        "self": lambda grad: _zeros(grad),
        "src": lambda grad, src_scalar_type, src_device: _source_grad(grad, src_scalar_type, src_device),
    },
    samples=[((3, 4), (4,))],
    function=False,
)


def _to_copy(self: Tensor, kind: dtype, on: device, non_blocking: bool, memory_format: memory_format | None) -> Tensor:
    made = _copied_to(self, kind, on, memory_format)
    # Only into pinned memory can a GPU copy while the host goes on.
    return pin(made) if non_blocking and on is CPU and self.device is not CPU else made


def _copied_to(self: Tensor, kind: dtype, on: device, memory_format: memory_format | None) -> Tensor:
    if self._device is META and on is not META:
        raise NotImplementedError(NO_DATA)
    _warn_of_imaginary(self, kind)
    array = resolved(self)
    strides = strides_of(array.shape, self.strides, memory_format)
    if kind is not self.dtype:
        return fresh(laid_out(cast(array, kind), strides), kind, on)
    return fresh(owned(array, strides), kind, on)


to_copy = define(
    "_to_copy(Tensor self, ScalarType? dtype=None, Device? device=None, bool non_blocking=False, "
    "MemoryFormat? memory_format=None, *, Layout? layout=None, bool? pin_memory=None) -> Tensor",
    doc="A copy in another dtype, on another device or in another memory format.",
    run=lambda self, dtype, device, non_blocking, memory_format, layout, pin_memory: _to_copy(
        self, dtype or self.dtype, device or self.device, non_blocking, memory_format
    ),
    node="ToCopyBackward0",
    grads={
        "self": lambda grad, self_scalar_type, self_device: _source_grad(grad, self_scalar_type, self_device),
    },
    samples=[],
    method=False,
    function=False,
)


def _converted(
    self: Tensor,
    kind: dtype | None,
    on: device | None,
    copy: bool,
    memory_format: memory_format | None,
    non_blocking: bool = False,
) -> Tensor:
    kind, on = kind or self.dtype, on or self.device
    if kind is self.dtype and on is self.device and not copy and _suits(self, memory_format):
        return self
    return to_copy.call(self, kind, on, non_blocking, memory_format)  # type: ignore[no-any-return]


def _suits(self: Tensor, asked: memory_format | None) -> bool:
    if asked is None or asked is preserve_format:
        return True
    last = suggests_channels_last(self._array.shape, self.strides)
    return (asked in (channels_last, channels_last_3d)) == last


_TAIL = "bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor(a)"
TO_DOC = "Itself when dtype, device and memory format are already right, else a copy."


def _place(on: device | None) -> device | None:
    from stridescope.engine.ops.creation import place_of

    return None if on is None else place_of(on)


define(
    f"to.device(Tensor(a) self, Device? device=None, ScalarType? dtype=None, {_TAIL}",
    doc=TO_DOC,
    composite=lambda self, device, dtype, non_blocking, copy, memory_format: _converted(
        self, dtype, _place(device), copy, memory_format, non_blocking
    ),
    function=False,
)
define(
    f"to.dtype(Tensor(a) self, ScalarType dtype, {_TAIL}",
    doc=TO_DOC,
    composite=lambda self, dtype, non_blocking, copy, memory_format: _converted(self, dtype, None, copy, memory_format),
    function=False,
)
define(
    f"to.other(Tensor(a) self, Tensor other, {_TAIL}",
    doc=TO_DOC,
    composite=lambda self, other, non_blocking, copy, memory_format: _converted(
        self, other.dtype, other.device, copy, memory_format, non_blocking
    ),
    function=False,
)


def _define_cast(name: str, kind: dtype) -> None:
    define(
        f"{name}(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)",
        doc=f"The tensor as {kind.name}: itself, or a copy.",
        composite=lambda self, memory_format=None: _converted(self, kind, None, False, memory_format),
        function=False,
    )


CASTS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "int": "int32",
    "long": "int64", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64",
    "cdouble": "complex128",
}  # fmt: skip
for _name, _kind in CASTS.items():
    _define_cast(_name, BY_NAME[_kind])


def _chalf(self: Tensor, memory_format: Any = None) -> Tensor:
    raise NotImplementedError("torch.Tensor.chalf is not in Stridescope yet: there is no complex32")


define(
    "chalf(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)",
    doc="complex32, which this engine does not have.",
    composite=_chalf,
    function=False,
)
define(
    "type_as(Tensor self, Tensor other) -> Tensor",
    doc="The tensor in the dtype and on the device of another.",
    composite=lambda self, other: _converted(self, other.dtype, other.device, False, None),
    function=False,
)
define(
    "cpu(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)",
    doc="The tensor in host memory: itself, or a copy.",
    composite=lambda self, memory_format=None: _converted(self, None, device("cpu"), False, memory_format),
    function=False,
)
define(
    "cuda(Tensor(a) self, Device? device=None, bool non_blocking=False, *, MemoryFormat? memory_format=None) "
    "-> Tensor(a)",
    doc="The tensor on a GPU: itself, or a copy.",
    composite=lambda self, on=None, non_blocking=False, memory_format=None: _converted(
        self, None, _place(on or device("cuda")), False, memory_format, non_blocking
    ),
    function=False,
)


detach = define(
    "detach(Tensor(a) self) -> Tensor(a)",
    doc="The same storage without history.",
    view=lambda layout: layout,
    samples=[((3, 4),)],
)
