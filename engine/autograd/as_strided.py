"""The gradient of a view that reads its storage by sizes, strides and an offset.

``as_strided`` sees the storage, not its input's elements, so its gradient does too: the incoming gradient is laid into
a storage of zeros by the output's layout and read out again by the input's. Elements that the output reads several
times are summed, those that the input reads several times share evenly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stridescope.engine.autograd.blank import zeros
from stridescope.engine.autograd.node import Edge, Gradients, Node
from stridescope.engine.dtype import int64
from stridescope.engine.layout import Layout
from stridescope.engine.tensor import Tensor, fresh


def view_into(whole: Tensor, layout: Layout, offset: int) -> Tensor:
    """A view of ``whole`` by the sizes and strides of ``layout``."""
    result: Tensor = whole.as_strided(layout.sizes, layout.strides, offset)
    return result


def overlaps(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two indices may read the same element (never false by mistake)."""
    reach = 0
    for size, stride in sorted(zip(sizes, strides, strict=True), key=lambda pair: pair[1]):
        if size == 1:
            continue
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def positions(layout: Layout) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The storage element that each index reads, flattened."""
    where = np.array(layout.offset, np.int64)
    for size, stride in zip(layout.sizes, layout.strides, strict=True):
        where = where[..., None] + np.arange(size, dtype=np.int64) * stride
    return where.reshape(-1)


def as_strided_backward(gradient: Tensor, source: Layout, result: Layout) -> Tensor:
    """The gradient for a tensor of layout ``source`` of which ``result`` was read."""
    low = min(source.offset, result.offset)
    source, result = _shifted(source, low), _shifted(result, low)
    gradient, result = _summed(gradient, result)
    storage = zeros((max(source.extent(), result.extent(), 0),), gradient)
    if overlaps(result.sizes, result.strides):
        where = fresh(positions(result), int64)
        storage.index_add_(0, where, gradient.reshape(-1))
    elif gradient.numel():
        storage.as_strided(result.sizes, result.strides, result.offset).copy_(gradient)
    if overlaps(source.sizes, source.strides):
        # What the input does not read becomes NaN (0 / 0); nobody sees it, but a write's version and node are seen.
        times = np.bincount(positions(source), minlength=storage.numel())
        storage.div_(fresh(times, int64).to(storage.dtype))
    return view_into(storage, source, source.offset)


def _shifted(layout: Layout, by: int) -> Layout:
    return layout._replace(offset=layout.offset - by)


def _summed(gradient: Tensor, result: Layout) -> tuple[Tensor, Layout]:
    """Sum the gradient over dims that repeat (stride 0) and drop dims of size 1."""
    for dim in range(len(result.sizes) - 1, -1, -1):
        size, stride = result.sizes[dim], result.strides[dim]
        if size == 1:
            gradient = gradient.squeeze(dim)
        elif stride == 0:
            gradient = gradient.sum((dim,), False)
        else:
            continue
        result = Layout(
            (*result.sizes[:dim], *result.sizes[dim + 1 :]),
            (*result.strides[:dim], *result.strides[dim + 1 :]),
            result.offset,
        )
    return gradient, result


class AsStridedBackward0(Node):
    """The node that a view gets when its storage was written: straight from the base."""

    __slots__ = ("result", "source")

    def __init__(self, base: Tensor, view: Tensor, edge: Edge) -> None:
        self.source, self.result = base.layout_, view.layout_
        super().__init__((edge,))

    def _run(self, gradients: Gradients) -> Gradients:
        """Lay the gradient into the base's storage; where nobody wants it, there is none."""
        gradient = gradients[0]
        return (
            None
            if gradient is None or self._edges[0][0] is None
            else as_strided_backward(gradient, self.source, self.result),
        )

    @property
    def _saved_size(self) -> tuple[int, ...]:
        return self.result.sizes

    @property
    def _saved_stride(self) -> tuple[int, ...]:
        return self.result.strides

    @property
    def _saved_storage_offset(self) -> int:
        return self.result.offset


AsStridedBackward0.__module__ = "builtins"
