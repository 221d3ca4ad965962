"""Views: other sizes, strides and offsets over the same storage; no byte moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.layout import Layout, contiguous_strides, expand, infer_size, view_strides, wrap_dim, wrap_dims
from stridescope.engine.tensor import Tensor


def _transpose(layout: Layout, dim0: int, dim1: int) -> Layout:
    ndim = len(layout.sizes)
    order = list(range(ndim))
    a, b = wrap_dim(dim0, ndim), wrap_dim(dim1, ndim)
    if ndim:
        order[a], order[b] = order[b], order[a]
    return permuted(layout, order)


def permuted(layout: Layout, order: Sequence[int]) -> Layout:
    """The layout with its dims in this order."""
    return Layout(tuple(layout.sizes[d] for d in order), tuple(layout.strides[d] for d in order), layout.offset)


def _permute(layout: Layout, dims: Sequence[int]) -> Layout:
    ndim = len(layout.sizes)
    if len(dims) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    order = [wrap_dim(d, ndim) for d in dims]
    if len(set(order)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return permuted(layout, order)


def _t(layout: Layout) -> Layout:
    ndim = len(layout.sizes)
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return permuted(layout, range(ndim - 1, -1, -1))


def _view(layout: Layout, size: Sequence[int]) -> Layout:
    shape = infer_size(size, layout.numel)
    strides = view_strides(layout.sizes, layout.strides, shape)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return Layout(shape, strides, layout.offset)


def _expand(layout: Layout, size: Sequence[int], implicit: bool) -> Layout:
    if len(size) < len(layout.sizes):
        raise RuntimeError(
            f"the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(layout.sizes)})"
        )
    return expand(layout, size)


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


def without(values: Sequence[int], dim: int) -> tuple[int, ...]:
    """The tuple without its entry at ``dim``."""
    return (*values[:dim], *values[dim + 1 :])


def replaced(values: Sequence[int], dim: int, value: int) -> tuple[int, ...]:
    """The tuple with another entry at ``dim``."""
    return (*values[:dim], value, *values[dim + 1 :])


def sliced(layout: Layout, dim: int, start: int | None, end: int | None, step: int) -> Layout:
    """``layout[…, start:end:step, …]`` along one dim, clamped as Python clamps."""
    ndim = len(layout.sizes)
    if not ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    size = layout.sizes[dim]
    first = _clamped(0 if start is None else start, size)
    last = max(_clamped(size if end is None else end, size), first)
    sizes = replaced(layout.sizes, dim, (last - first + step - 1) // step)
    strides = replaced(layout.strides, dim, layout.strides[dim] * step)
    return Layout(sizes, strides, layout.offset + first * layout.strides[dim])


def _clamped(index: int, size: int) -> int:
    return min(max(index + size if index < 0 else index, 0), size)


def _unsqueeze(layout: Layout, dim: int) -> Layout:
    ndim = len(layout.sizes)
    dim = wrap_dim(dim, ndim + 1)
    stride = layout.sizes[dim] * layout.strides[dim] if dim < ndim else 1
    sizes = (*layout.sizes[:dim], 1, *layout.sizes[dim:])
    return Layout(sizes, (*layout.strides[:dim], stride, *layout.strides[dim:]), layout.offset)


def _squeezed(layout: Layout, dims: Sequence[int]) -> Layout:
    kept = [d for d in range(len(layout.sizes)) if not (d in dims and layout.sizes[d] == 1)]
    return permuted(layout, kept)


transpose = define(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    doc="Swaps two dims without moving a byte: only the strides change.",
    view=_transpose,
    quick=lambda a, dim0, dim1: a.swapaxes(dim0, dim1),
    grads={"self": lambda grad, dim0, dim1: grad.transpose(dim0, dim1)},
    samples=[((3, 4), 0, 1)],
)

t = define(
    "t(Tensor(a) self) -> Tensor(a)",
    doc="The transpose of a matrix.",
    view=_t,
    quick=lambda a: a.T if a.ndim < 3 else None,
    grads={"self": lambda grad: grad.t()},
    samples=[((3, 4),), ((3,),)],
)

permute = define(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    doc="Puts the dims in another order.",
    view=_permute,
    quick=lambda a, dims: a.transpose(dims),
    grads={"self": lambda grad, dims: grad.permute(tuple(np.argsort([d % len(dims) for d in dims]).tolist()))},
    samples=[((2, 3, 4), (2, 0, 1))],
)

view = define(
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    doc="Reads the same elements in another shape; refuses when only a copy could.",
    view=_view,
    quick=lambda a, size: a.reshape(size) if a.flags.c_contiguous else None,
    grads={"self": lambda grad, self_sym_sizes: grad.reshape(self_sym_sizes)},
    samples=[((3, 4), (2, 6))],
    function=False,
)

unsafe_view = define(
    "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
    doc="A view of a fresh copy: it counts as a tensor of its own.",
    run=lambda self, size: _own_view(self, size),
    node="UnsafeViewBackward0",
    grads={"self": lambda grad, self_sym_sizes: grad.reshape(self_sym_sizes)},
    samples=[((3, 4), (2, 6))],
    method=False,
)


def _own_view(self: Tensor, size: Sequence[int]) -> Tensor:
    from stridescope.engine.tensor import alias

    return alias(self, _view(self.layout_, size))


def _reshape(self: Tensor, shape: Sequence[int]) -> Tensor:
    sizes = infer_size(shape, self._array.size)
    strides = view_strides(self._array.shape, self.strides, sizes)
    if strides is not None:
        return view.call(self, sizes)  # type: ignore[no-any-return]
    return unsafe_view.call(self.contiguous(), sizes)  # type: ignore[no-any-return]


reshape = define(
    "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
    doc="The same elements in another shape: a view where one is possible, else a copy.",
    composite=_reshape,
    samples=[((3, 4), (2, 6))],
)

expand_ = define(
    "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    doc="Repeats dims of size 1 by giving them stride 0.",
    view=_expand,
    grads={"self": lambda grad, self_sym_sizes: grad.sum_to_size(self_sym_sizes)},
    samples=[((3, 1), (3, 4))],
    function=False,
)


def _select_backward(grad: Tensor, sizes: Sequence[int], dim: int, index: int) -> Tensor:
    whole = grad.new_zeros(tuple(sizes))
    whole.select(dim, index).copy_(grad)
    return whole  # type: ignore[no-any-return]


def _slice_backward(grad: Tensor, sizes: Sequence[int], dim: int, start: Any, end: Any, step: int) -> Tensor:
    whole = grad.new_zeros(tuple(sizes))
    slice_.call(whole, dim, start, end, step).copy_(grad)
    return whole  # type: ignore[no-any-return]


select = define(
    "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    doc="One index along a dim; the dim is gone.",
    view=_select,
    quick=lambda a, dim, index: a[index, ...] if dim == 0 else None,
    grads={"self": lambda grad, self_sym_sizes, dim, index: _select_backward(grad, self_sym_sizes, dim, index)},
    samples=[((3, 4), 0, 1)],
)

slice_ = define(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    doc="Every step-th element from start up to end along a dim.",
    view=lambda layout, dim, start, end, step: sliced(layout, dim, start, end, step),
    grads={
        "self": lambda grad, self_sym_sizes, dim, start, end, step: _slice_backward(
            grad, self_sym_sizes, dim, start, end, step
        )
    },
    samples=[((5, 4), 0, 1, 4, 2)],
    method=False,
    function=False,
)

unsqueeze = define(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    doc="Puts in a dim of size 1.",
    view=_unsqueeze,
    grads={"self": lambda grad, dim: grad.squeeze(dim)},
    samples=[((3, 4), 1)],
)

squeeze = define(
    "squeeze(Tensor(a) self) -> Tensor(a)",
    doc="Takes out all dims of size 1.",
    view=lambda layout: _squeezed(layout, range(len(layout.sizes))),
    node="SqueezeBackward0",
    grads={"self": lambda grad, self_sym_sizes: grad.reshape(self_sym_sizes)},
    samples=[((3, 1, 4),)],
)

squeeze_dim = define(
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    doc="Takes out a dim if its size is 1.",
    view=lambda layout, dim: _squeezed(layout, (wrap_dim(dim, len(layout.sizes)),)),
    node="SqueezeBackward1",
    grads={"self": lambda grad, self_sym_sizes: grad.reshape(self_sym_sizes)},
    samples=[((3, 1, 4), 1)],
)

squeeze_dims = define(
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    doc="Takes out the given dims whose size is 1.",
    view=lambda layout, dim: _squeezed(layout, wrap_dims(dim, len(layout.sizes))),
    node="SqueezeBackward2",
    grads={"self": lambda grad, self_sym_sizes: grad.reshape(self_sym_sizes)},
    samples=[((1, 3, 1), (0, 2))],
)


def _as_strided(layout: Layout, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Layout:
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    return Layout(tuple(size), tuple(stride), layout.offset if storage_offset is None else storage_offset)


as_strided = define(
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
    doc="Reads the storage by sizes, strides and an offset of your own.",
    view=_as_strided,
    samples=[((3, 4), (2, 2), (1, 4), 1)],
)

__all__ = ["contiguous_strides", "sliced"]
