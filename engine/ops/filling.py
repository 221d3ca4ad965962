"""Setting every element: fill and zero_."""

from __future__ import annotations

from typing import Any

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.overlap import is_lazy, refuse_internal_overlap
from stridescope.engine.dispatch.run import cast, laid_out, on_copy, resolved, stored
from stridescope.engine.layout import dense_strides_like
from stridescope.engine.ops.creation import zeros_like
from stridescope.engine.ops.number_range import filler_of
from stridescope.engine.ops.valueless import is_meta
from stridescope.engine.tensor import Tensor, fresh


def _number(self: Tensor, value: Any) -> Tensor:
    if is_lazy(self):
        return on_copy(self, _number, value)
    if is_meta(self):
        return self
    self._array[...] = filler_of(value, self.dtype, self._array.size)
    return self


def _tensor(self: Tensor, value: Tensor) -> Tensor:
    if value._array.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions."
        )
    refuse_internal_overlap(self)
    if is_meta(self):
        return self
    self._array[...] = stored(self, cast(resolved(value), self.dtype))
    return self


def _copy(self: Tensor, write: Any, value: Any) -> Tensor:
    array = laid_out(resolved(self).copy(), dense_strides_like(self._array.shape, self.strides))
    return write(fresh(array, self.dtype, self.device), value)  # type: ignore[no-any-return]


def _zeros(grad: Tensor) -> Tensor:
    return zeros_like.call(grad)  # type: ignore[no-any-return]


_OF_NUMBER: dict[str, Any] = {"self": _zeros}
_OF_TENSOR: dict[str, Any] = {"self": _zeros, "value": lambda grad: grad.sum()}
define(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    doc="One value in the shape of the tensor.",
    run=lambda self, value: _copy(self, _tensor, value),
    grads=_OF_TENSOR,
    node="FillBackward1",
    method=False,
)
define(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    doc="One value in the shape of the tensor.",
    run=lambda self, value: _copy(self, _number, value),
    grads=_OF_NUMBER,
    method=False,
)
fill_with = define(
    "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
    doc="Sets every element to the value of a 0-d tensor.",
    run=_tensor,
    grads=_OF_TENSOR,
    node="FillBackward3",
)
fill_ = define(
    "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    doc="Sets every element.",
    run=_number,
    grads=_OF_NUMBER,
    node="FillBackward2",
)
zero_ = define(
    "zero_(Tensor(a!) self) -> Tensor(a!)",
    doc="Sets every element to 0.",
    run=lambda self: _number(self, 0),
    grads=_OF_NUMBER,
)


def _fill_diagonal(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    sizes, strides, offset = self.layout_
    if len(sizes) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(sizes) > 2 and len(set(sizes)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    count, step = min(sizes), (sum(strides),)
    fill_.call(self.as_strided((count,), step, offset), fill_value)
    width = sizes[1] + 1
    if wrap and len(sizes) == 2 and sizes[0] > width:
        further = -(-self.numel() // width) - count
        fill_.call(self.as_strided((further,), step, offset + strides[0] * width), fill_value)
    return self


define(
    "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
    doc="Sets the main diagonal; with ``wrap`` a tall matrix gets one in every block of its width.",
    composite=_fill_diagonal,
)
