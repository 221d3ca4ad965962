"""Views: other sizes, strides and offsets over the same storage; no byte moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.call import by_tensor
from stridescope.engine.dispatch.op import define
from stridescope.engine.dtype import type_name
from stridescope.engine.layout import (
    Layout,
    contiguous_strides,
    expand,
    infer_size,
    is_contiguous,
    view_strides,
    wrap_dim,
    wrap_dims,
)
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, alias


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


@by_tensor
def _expand(self: Tensor, size: Sequence[int], implicit: bool) -> Layout:
    layout = self.layout_
    if len(size) < len(layout.sizes):
        raise RuntimeError(
            f"expand({type_name(self.dtype, self.device.type)}{{{list(layout.sizes)}}}, size={list(size)}): the number "
            f"of sizes provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(layout.sizes)})"
        )
    return expand(layout, size)


def _expanded_array(array: Array, size: Sequence[int], implicit: bool) -> Array | None:
    """The same on an array that is dense, where no size is left open."""
    extra = len(size) - array.ndim
    strides = [0] * extra
    if extra and min(size[:extra]) < 2:
        return None
    for old, stride, wanted in zip(array.shape, array.strides, size[extra:], strict=True):
        if wanted != old and (old != 1 or wanted < 2):
            return None
        strides.append(stride if wanted == old else 0)
    return np.ndarray(size, array.dtype, array, 0, strides)


def without(values: Sequence[int], dim: int) -> tuple[int, ...]:
    """The tuple without its entry at ``dim``."""
    return (*values[:dim], *values[dim + 1 :])


def replaced(values: Sequence[int], dim: int, value: int) -> tuple[int, ...]:
    """The tuple with another entry at ``dim``."""
    return (*values[:dim], value, *values[dim + 1 :])


def _unsqueeze(layout: Layout, dim: int) -> Layout:
    ndim = len(layout.sizes)
    dim = wrap_dim(dim, ndim + 1)
    stride = layout.sizes[dim] * layout.strides[dim] if dim < ndim else 1
    sizes = (*layout.sizes[:dim], 1, *layout.sizes[dim:])
    return Layout(sizes, (*layout.strides[:dim], stride, *layout.strides[dim:]), layout.offset)


def _row_of(array: Array) -> Array | None:
    """A new first dim where NumPy gives it the stride that PyTorch gives it."""
    return array.reshape((1, *array.shape)) if array.flags.c_contiguous and 1 not in array.shape else None


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


def _plainly_laid(array: Any) -> bool:
    """Row-major, and without strides of their own on dims of size 1, which the view's strides would follow."""
    if 1 not in array.shape:
        return array.flags.c_contiguous  # type: ignore[no-any-return]
    item = array.itemsize
    return array.strides == tuple(s * item for s in contiguous_strides(array.shape))  # type: ignore[no-any-return]


view = define(
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    doc="Reads the same elements in another shape; refuses when only a copy could.",
    view=_view,
    quick=lambda a, size: a.reshape(size) if _plainly_laid(a) and (not size or min(size) >= -1) else None,
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
    result = alias(self, _view(self.layout_, size))
    result._version_counter = None
    return result


reshape_alias = define(
    "_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
    doc="The view that reshape makes of a tensor that is not contiguous.",
    view=lambda layout, size, stride: Layout(tuple(size), tuple(stride), layout.offset),
    grads={"self": lambda grad, self_sym_sizes: grad.reshape(self_sym_sizes)},
    samples=[((3, 4), (12,), (1,))],
    method=False,
)


def _reshape(self: Tensor, shape: Sequence[int]) -> Tensor:
    sizes = infer_size(shape, self._array.size)
    if self._array.flags.c_contiguous and self._array.size:
        return view.call(self, tuple(shape))  # type: ignore[no-any-return]
    strides = view_strides(self._array.shape, self.strides, sizes)
    if strides is not None and is_contiguous(self._array.shape, self.strides):
        return view.call(self, tuple(shape))  # type: ignore[no-any-return]
    if strides is not None:
        return reshape_alias.call(self, sizes, strides)  # type: ignore[no-any-return]
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
    quick=_expanded_array,
    grads={"self": lambda grad, self_sym_sizes: grad.sum_to_size(self_sym_sizes)},
    samples=[((3, 1), (3, 4))],
    function=False,
)


def _unsqueezed(grad: Tensor, sizes: Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """Put the dims of size 1 back in that a squeeze took out; the gradient itself when it took out none."""
    chosen = range(len(sizes)) if dims is None or not sizes else sorted(d % len(sizes) for d in dims)
    for dim in chosen:
        if sizes and sizes[dim] == 1:
            grad = grad.unsqueeze(dim)
    return grad


unsqueeze = define(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    doc="Puts in a dim of size 1.",
    view=_unsqueeze,
    quick=lambda a, dim: _row_of(a) if dim == 0 else None,
    grads={"self": lambda grad, dim: grad.squeeze(dim)},
    samples=[((3, 4), 1)],
)

squeeze = define(
    "squeeze(Tensor(a) self) -> Tensor(a)",
    doc="Takes out all dims of size 1.",
    view=lambda layout: _squeezed(layout, range(len(layout.sizes))),
    quick=lambda a: a.squeeze(),
    node="SqueezeBackward0",
    grads={"self": lambda grad, self_sym_sizes: _unsqueezed(grad, self_sym_sizes)},
    samples=[((3, 1, 4),)],
)

squeeze_dim = define(
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    doc="Takes out a dim if its size is 1.",
    view=lambda layout, dim: _squeezed(layout, (wrap_dim(dim, len(layout.sizes)),)),
    node="SqueezeBackward1",
    grads={"self": lambda grad, self_sym_sizes, dim: _unsqueezed(grad, self_sym_sizes, (dim,))},
    samples=[((3, 1, 4), 1)],
)

squeeze_dims = define(
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    doc="Takes out the given dims whose size is 1.",
    view=lambda layout, dim: _squeezed(layout, wrap_dims(dim, len(layout.sizes))),
    node="SqueezeBackward2",
    grads={"self": lambda grad, self_sym_sizes, dim: _unsqueezed(grad, self_sym_sizes, dim)},
    samples=[((1, 3, 1), (0, 2))],
)
