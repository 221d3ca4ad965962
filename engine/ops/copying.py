"""Copies: clone, contiguous, copy_ and conversions between dtypes and devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.device import CPU, device
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import cast, resolved
from stridescope.engine.dtype import dtype
from stridescope.engine.events import CopyMade, journal
from stridescope.engine.layout import broadcast_shapes, dense_strides_like, is_contiguous
from stridescope.engine.tensor import Tensor, alias, dense, fresh


def copied(source: Tensor, reason: str, preserve: bool = True) -> Tensor:
    """A copy of a tensor's elements in memory of its own, keeping the order of its dims where they are dense."""
    from stridescope.engine.dispatch.run import laid_out

    if (emit := journal.emit) is not None:
        emit((CopyMade.code, source._array.nbytes, reason))
    array = resolved(source)
    if not preserve:
        return fresh(dense(array.copy()), source.dtype, source.device)
    return fresh(laid_out(array.copy(), dense_strides_like(array.shape, source.strides)), source.dtype, source.device)


clone = define(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    doc="A copy with a storage of its own.",
    run=lambda self, memory_format: copied(self, "clone"),
    grads={"self": lambda grad: grad},
    samples=[((3, 4),)],
)


def _contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    if is_contiguous(self._array.shape, self.strides):
        return self
    return _row_major.call(self)  # type: ignore[no-any-return]


_row_major = define(
    "clone.contiguous(Tensor self) -> Tensor",
    doc="A row-major copy.",
    run=lambda self: copied(self, "contiguous", preserve=False),
    node="CloneBackward0",
    grads={"self": lambda grad: grad},
    samples=[((3, 4),)],
    method=False,
    function=False,
)

contiguous = define(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=None) -> Tensor(a)",
    doc="The tensor itself when it is row-major, else a row-major copy.",
    composite=_contiguous,
    samples=[((3, 4),)],
    function=False,
)


def _copy_into(self: Tensor, src: Tensor, non_blocking: bool) -> Tensor:
    shape = self._array.shape
    if broadcast_shapes(shape, src._array.shape) != shape:
        raise RuntimeError(
            f"output with shape {list(shape)} doesn't match the broadcast shape "
            f"{list(broadcast_shapes(shape, src._array.shape))}"
        )
    self._array[...] = cast(resolved(src), self.dtype)
    return self


copy_ = define(
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    doc="Writes src's elements into self.",
    run=_copy_into,
    node="CopyBackwards",
    grads={"self": lambda grad: grad.new_zeros(grad.shape), "src": lambda grad: grad},
    samples=[((3, 4), (4,))],
    function=False,
)


def _to(self: Tensor, kind: dtype, on: device) -> Tensor:
    from stridescope.engine.dispatch.run import laid_out

    array = cast(resolved(self), kind)
    array = laid_out(array, dense_strides_like(self._array.shape, self.strides))
    return fresh(array.copy(order="K") if array is self._array else array, kind, on)


to_copy = define(
    "_to_copy(Tensor self, ScalarType dtype, Device device) -> Tensor",
    doc="A copy in another dtype or on another device.",
    run=_to,
    node="ToCopyBackward0",
    grads={"self": lambda grad, self_scalar_type, self_device: grad.to(self_device).to(self_scalar_type)},
    samples=[],
    method=False,
    function=False,
)


def to(self: Tensor, *targets: Any, copy: bool = False, non_blocking: bool = False, **named: Any) -> Tensor:
    """``Tensor.to``: itself when dtype and device are already right, else a copy.

    Accepts a dtype, a device (or its name), both, or another tensor.
    """
    kind, on = self.dtype, self.device
    for target in [*targets, named.get("dtype"), named.get("device"), named.get("other")]:
        if isinstance(target, dtype):
            kind = target
        elif isinstance(target, Tensor):
            kind, on = target.dtype, target.device
        elif isinstance(target, (device, str)):
            on = device(target)
    if kind is self.dtype and on is self.device and not copy:
        return self
    return to_copy.call(self, kind, on)  # type: ignore[no-any-return]


detach = define(
    "detach(Tensor(a) self) -> Tensor(a)",
    doc="The same storage without history.",
    view=lambda layout: layout,
    samples=[((3, 4),)],
)
__all__ = ["CPU", "alias", "np"]
