"""Elements by their positions in the flat tensor: take, put, and the coordinates of such positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.dispatch.halfway import halfway
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.run import laid_out, resolved
from stridescope.engine.dtype import INTEGER, int64, scalar_name
from stridescope.engine.layout import dense_strides_like
from stridescope.engine.ops.determinism import alert
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.ops.walked import first_wrong, walk
from stridescope.engine.tensor import Tensor, fresh


def _no_element(entry: int, size: int) -> IndexError:
    return IndexError(f"out of range: tried to access index {entry} on a tensor of {size} elements.")


def _take(self: Tensor, index: Tensor) -> Tensor:
    if index.dtype is not int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {scalar_name(index.dtype)}")
    where, size = index._array, self._array.size
    if not size and where.size:
        raise IndexError("take(): tried to take from an empty tensor")
    if (stop := first_wrong(where, -size, size)) is not None:
        raise _no_element(stop[1], size)
    return wrapped(resolved(self).reshape(-1)[where], self.dtype, self)


define(
    "take(Tensor self, Tensor index) -> Tensor",
    doc="Reads by positions in the flat tensor.",
    run=_take,
    out=Out(memory_first=True, apart=True, dtype_first=("take(): Expected",)),
    grads={"self": lambda grad, self, index: zeros_like(self).put_(index, grad, True)},
)


def _put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    if index.dtype is not int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {scalar_name(index.dtype)}")
    if self.dtype is not source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{scalar_name(self.dtype)} and source.dtype = {scalar_name(source.dtype)}"
        )
    if index._array.size != source._array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._array.size}, index.numel() = {index._array.size}"
        )
    if not self._array.size and index._array.size:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    if not accumulate:
        alert("put_")
    entries, size = index.reshape(source.shape), self._array.size
    where = entries._array.reshape(-1)
    flat, values = resolved(self).reshape(-1).copy(), resolved(source).reshape(-1)
    stop = first_wrong(where, -size, size, lambda: walk(source._array.shape, [source.strides, entries.strides]))
    if stop is not None:
        where, values = where[stop[0]], values[stop[0]]
    if accumulate:
        (np.logical_or if flat.dtype == np.bool_ else np.add).at(flat, where, values)
    else:
        flat[where] = values
    result = fresh(
        laid_out(flat.reshape(self.shape), dense_strides_like(self.shape, self.strides)), self.dtype, self.device
    )
    if stop is not None:
        raise halfway(_no_element(stop[1], size), result)
    return result


define(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    doc="Writes by positions in the flat tensor.",
    run=_put,
    grads={
        "self": lambda grad, index, source, accumulate: (
            grad if accumulate else grad.put(index, source.new_zeros(source.shape), False)
        ),
        "source": lambda grad, index, source: grad.take(index).reshape(source.shape),
    },
    inplace=True,
)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """``torch.unravel_index``: the coordinates, dim by dim, of positions in a flat tensor of this shape."""
    if indices.dtype.category != INTEGER:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(not isinstance(size, int) for size in sizes):
        bad = next(type(size) for size in sizes if not isinstance(size, int))
        raise TypeError(f"expected 'shape' sequence to only contain ints, but got {bad}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    steps = [math.prod(sizes[dim + 1 :]) for dim in range(len(sizes))]
    table = [fresh(np.array(values, np.int64), int64) for values in (steps, sizes)]
    result = indices.unsqueeze(-1).floor_divide(table[0]) % table[1]
    return result.unbind(-1)  # type: ignore[no-any-return]


FUNCTIONS: dict[str, Any] = {"unravel_index": unravel_index}
