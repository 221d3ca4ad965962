"""``view(dtype)``: the same bytes read as another dtype."""

from __future__ import annotations

from typing import Any

from stridescope.engine.dispatch.call import by_tensor
from stridescope.engine.dispatch.op import define
from stridescope.engine.dtype import dtype, scalar_name
from stridescope.engine.layout import Layout
from stridescope.engine.ops.views import replaced
from stridescope.engine.tensor import Tensor


@by_tensor
def _view_dtype(self: Tensor, dtype: dtype) -> Any:
    for bit, what in ((self._conj, "conjugate view tensors"), (self._neg, "tensors with negative bit set")):
        if bit:
            raise RuntimeError(f"torch.Tensor.view is not supported for {what} when converting to a different dtype.")
    layout = self.layout_
    old, new = self.dtype.itemsize, dtype.itemsize
    if old == new:
        return layout, dtype
    names = f"{scalar_name(self.dtype)} as {scalar_name(dtype)} (different element sizes)"
    if not layout.sizes:
        raise RuntimeError(f"self.dim() cannot be 0 to view {names}")
    if old > new:
        if layout.strides[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {names}, but got {layout.strides[-1]}")
        ratio = old // new
        sizes = replaced(layout.sizes, -1 % len(layout.sizes), layout.sizes[-1] * ratio)
        strides = (*(s * ratio for s in layout.strides[:-1]), 1)
        return Layout(sizes, strides, layout.offset * ratio), dtype
    return _wider(layout, new // old, names), dtype


def _wider(layout: Layout, ratio: int, names: str) -> Layout:
    for what, value in (("size", layout.sizes[-1]), ("storage_offset", layout.offset)):
        if value % ratio:
            place = "(-1)" if what == "size" else "()"
            raise RuntimeError(f"self.{what}{place} must be divisible by {ratio} to view {names}, but got {value}")
    if layout.strides[-1] != 1 and layout.sizes[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 to view {names}, but got {layout.strides[-1]}")
    for dim, stride in enumerate(layout.strides[:-1]):
        if stride % ratio:
            raise RuntimeError(f"self.stride({dim}) must be divisible by {ratio} to view {names}, but got {stride}")
    sizes = (*layout.sizes[:-1], layout.sizes[-1] // ratio)
    return Layout(sizes, (*(s // ratio for s in layout.strides[:-1]), 1), layout.offset // ratio)


view_dtype = define(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    doc="The same bytes read as another dtype.",
    view=_view_dtype,
    function=False,
)
