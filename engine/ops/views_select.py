"""Views of a part of the storage: select, slice, narrow, diagonal, unfold, as_strided; and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.as_strided import as_strided_backward
from stridescope.engine.dispatch.call import by_tensor
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import INTEGER
from stridescope.engine.layout import Layout, contiguous, wrap_dim
from stridescope.engine.ops.views import replaced, without
from stridescope.engine.storage import Array, Storage
from stridescope.engine.tensor import Tensor, canonical, fresh, strided


def _select(layout: Layout, dim: int, index: int) -> Layout:
    ndim = len(layout.sizes)
    if not ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, ndim)
    size = layout.sizes[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(layout.sizes)} at dimension {dim}"
        )
    offset = layout.offset + (index + size if index < 0 else index) * layout.strides[dim]
    return Layout(without(layout.sizes, dim), without(layout.strides, dim), offset)


def sliced(layout: Layout, dim: int, start: int | None, end: int | None, step: int) -> Layout:
    """``layout[…, start:end:step, …]`` along one dim, clamped as Python clamps."""
    ndim = len(layout.sizes)
    if not ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    size = layout.sizes[dim]
    first = _clamped(0 if start is None else start, size)
    last = max(_clamped(size if end is None else end, size), first)
    sizes = replaced(layout.sizes, dim, (last - first + step - 1) // step)
    strides = replaced(layout.strides, dim, layout.strides[dim] * step)
    return Layout(sizes, strides, layout.offset + first * layout.strides[dim])


def _sliced_array(a: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:
    """``sliced`` on the array itself, for the first two dims."""
    if step < 1 or dim not in (0, 1):
        return None
    return a[start:end:step] if dim == 0 else a[:, start:end:step]


def _clamped(index: int, size: int) -> int:
    return min(max(index + size if index < 0 else index, 0), size)


def _diagonal(layout: Layout, offset: int, dim1: int, dim2: int) -> Layout:
    ndim = len(layout.sizes)
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = layout.sizes[first], layout.sizes[second]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = layout.offset
    if length:
        start += offset * layout.strides[second] if offset >= 0 else -offset * layout.strides[first]
    kept = [d for d in range(ndim) if d not in (first, second)]
    sizes = (*(layout.sizes[d] for d in kept), length)
    strides = (*(layout.strides[d] for d in kept), layout.strides[first] + layout.strides[second])
    return Layout(sizes, strides, start)


def _unfold(layout: Layout, dimension: int, size: int, step: int) -> Layout:
    ndim = len(layout.sizes)
    dim = wrap_dim(dimension, ndim)
    length = layout.sizes[dim] if ndim else 1
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")
    stride = layout.strides[dim] if ndim else 1
    sizes, strides = list(layout.sizes), list(layout.strides)
    if ndim:
        sizes[dim], strides[dim] = (length - size) // step + 1, stride * step
    return Layout((*sizes, size), (*strides, stride), layout.offset)


@by_tensor
def _as_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Layout:
    layout = Layout(tuple(size), tuple(stride), self.offset if storage_offset is None else storage_offset)
    check_fits(self.storage_, layout, self._array.itemsize)
    return layout


def check_fits(storage: Storage, layout: Layout, itemsize: int) -> None:
    """Refuse sizes, strides and an offset that would read outside the storage."""
    sizes, strides, offset = layout
    if len(sizes) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in strides):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}"
        )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    needed = 0 if 0 in sizes else layout.extent() * itemsize
    if needed > storage.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset {offset}, and itemsize "
            f"{itemsize} requiring a storage size of {needed} are out of bounds for storage of size {storage.nbytes}"
        )


# ---- gradients: zeros with the gradient added into the part that the view read ------------------------------------


def _placed(rule: Callable[..., Layout]) -> Callable[..., Tensor]:
    """The kernel that adds a gradient where ``rule``'s view reads, into zeros of the whole."""

    def run(grad_output: Tensor, input_sizes: Sequence[int], *args: Any) -> Tensor:
        whole = np.zeros(tuple(input_sizes), grad_output.dtype.np)
        layout = rule(contiguous(input_sizes), *args)
        values = resolved(grad_output)
        if values.size:
            part = strided(Storage(whole), layout, grad_output.dtype)
            if is_non_overlapping(layout):
                part[...] = values
            else:
                np.add.at(whole.reshape(-1), positions(layout), values)
        return fresh(canonical(whole), grad_output.dtype, grad_output.device)

    return run


def is_non_overlapping(layout: Layout) -> bool:
    """Whether no element of the storage is read twice, judged by strides that contain the dims inside them."""
    reach = 0
    for stride, size in sorted(zip(layout.strides, layout.sizes, strict=True)):
        if size > 1:
            if stride <= reach:
                return False
            reach += (size - 1) * stride
    return True


def positions(layout: Layout) -> Array:
    """The element of the storage that each element of the view reads."""
    found = np.full(layout.sizes, layout.offset, np.int64)
    for dim, (size, stride) in enumerate(zip(layout.sizes, layout.strides, strict=True)):
        shape = [1] * len(layout.sizes)
        shape[dim] = size
        found += (np.arange(size) * stride).reshape(shape)
    return found


def _define_gradient(name: str, arguments: str, rule: Callable[..., Layout], again: Callable[..., Any]) -> Any:
    return define(
        f"{name}(Tensor grad_output, SymInt[] input_sizes, {arguments}) -> Tensor",
        doc="The gradient of the view: zeros with the gradient where the view read.",
        run=_placed(rule),
        grads={"grad_output": again},
        method=False,
    )


select_backward: Op = _define_gradient(
    "select_backward", "int dim, SymInt index", _select, lambda grad, dim, index: grad.select(dim, index)
)
slice_backward: Op = _define_gradient(
    "slice_backward",
    "int dim, SymInt? start, SymInt? end, SymInt step",
    sliced,
    lambda grad, dim, start, end, step: slice_.call(grad, dim, start, end, step),
)
diagonal_backward: Op = _define_gradient(
    "diagonal_backward",
    "int offset, int dim1, int dim2",
    _diagonal,
    lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2),
)
unfold_backward: Op = _define_gradient(
    "unfold_backward",
    "int dim, int size, int step",
    _unfold,
    lambda grad, dim, size, step: grad.unfold(dim, size, step),
)


def _as_strided_grad(
    grad: Tensor, own: Layout, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> Tensor:
    offset = own.offset if storage_offset is None else storage_offset
    return as_strided_backward(grad, own, Layout(tuple(size), tuple(stride), offset))


# ---- the views -----------------------------------------------------------------------------------------------------

select: Op = define(
    "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    doc="One index along a dim; the dim is gone.",
    view=_select,
    quick=lambda a, dim, index: a[index, ...] if dim == 0 else None,
    grads={"self": lambda grad, self_sym_sizes, dim, index: select_backward.call(grad, self_sym_sizes, dim, index)},
    samples=[((3, 4), 0, 1)],
)

slice_: Op = define(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    doc="Every step-th element from start up to end along a dim.",
    view=sliced,
    quick=_sliced_array,
    grads={
        "self": lambda grad, self_sym_sizes, dim, start, end, step: slice_backward.call(
            grad, self_sym_sizes, dim, start, end, step
        )
    },
    samples=[((5, 4), 0, 1, 4, 2)],
    method=False,
    function=False,
)

diagonal = define(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    doc="The diagonal of two dims, as the last dim: one stride that walks along both.",
    view=_diagonal,
    grads={
        "self": lambda grad, self_sym_sizes, offset, dim1, dim2: diagonal_backward.call(
            grad, self_sym_sizes, offset, dim1, dim2
        )
    },
    samples=[((3, 4), 0, 0, 1), ((2, 3, 4), 1, 0, 2)],
)

unfold = define(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    doc="All windows of a size along a dim, as a new last dim; overlapping windows share elements.",
    view=_unfold,
    grads={
        "self": lambda grad, self_sym_sizes, dimension, size, step: unfold_backward.call(
            grad, self_sym_sizes, dimension, size, step
        )
    },
    samples=[((6,), 0, 3, 1)],
    function=False,
)

as_strided = define(
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
    doc="Reads the storage by sizes, strides and an offset of your own.",
    view=_as_strided,
    grads={
        "self": lambda grad, self_geometry, size, stride, storage_offset: _as_strided_grad(
            grad, self_geometry, size, stride, storage_offset
        )
    },
    samples=[((3, 4), (2, 2), (1, 4), 1)],
)


def _narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    ndim = self._array.ndim
    if not ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = self._array.shape[wrap_dim(dim, ndim)]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start > size - length:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_.call(self, dim, start, start + length, 1)  # type: ignore[no-any-return]


def _narrow_by_tensor(self: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
    if start._array.ndim or start.dtype.category != INTEGER:
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    return _narrow(self, dim, int(start.item()), length)


narrow = define(
    "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
    doc="length elements of a dim, from start on.",
    composite=_narrow,
    samples=[((3, 4), 1, 1, 2)],
)
define(
    "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
    doc="length elements of a dim, from start on.",
    composite=_narrow_by_tensor,
)
define(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    doc="The diagonal of the last two dims.",
    composite=lambda A, offset=0, dim1=-2, dim2=-1: A.diagonal(offset, dim1, dim2),
    namespace="torch.linalg",
    method=False,
)
