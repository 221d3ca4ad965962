"""Copies in another order: flip, roll, rot90, repeat, tile, repeat_interleave; diagonals and triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import laid_out, resolved
from stridescope.engine.dtype import int32, int64
from stridescope.engine.layout import (
    channels_last_strides,
    contiguous_format,
    contiguous_strides,
    dense_strides_like,
    suggests_channels_last,
    wrap_dim,
    wrap_dims,
)
from stridescope.engine.ops.copying import clone
from stridescope.engine.ops.valueless import is_meta
from stridescope.engine.ops.views import expand_, reshape, unsqueeze, view
from stridescope.engine.ops.views_copy import COPIES
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, canonical, fresh


def _owned(array: Array, like: Tensor, strides: Sequence[int] | None = None) -> Tensor:
    """A tensor of ``array``'s values in memory of its own, row-major unless strides are given."""
    wanted = contiguous_strides(array.shape) if strides is None else tuple(strides)
    copy = laid_out(np.array(array, order="C"), wanted)
    return fresh(copy, like.dtype, like.device)


def _flip(self: Tensor, dims: Sequence[int]) -> Tensor:
    wrapped = wrap_dims(dims, self._array.ndim)
    array = resolved(self)
    strides = dense_strides_like(array.shape, self.strides)
    return _owned(np.flip(array, wrapped) if array.ndim else array, self, strides)


flip = define(
    "flip(Tensor self, int[] dims) -> Tensor",
    doc="A copy in the opposite order along the dims.",
    run=_flip,
    grads={"self": lambda grad, dims: grad.flip(dims)},
    samples=[((3, 4), (0,))],
)


def _flip_dim(name: str, least: int, dim: int) -> None:
    def function(self: Tensor) -> Tensor:
        if self._array.ndim < least:
            raise RuntimeError(f"Input must be >= {least}-d.")
        return flip.call(self, (dim,))  # type: ignore[no-any-return]

    define(f"{name}(Tensor self) -> Tensor", doc=f"A copy in the opposite order along dim {dim}.", composite=function)


_flip_dim("fliplr", 2, 1)
_flip_dim("flipud", 1, 0)


def _roll(self: Tensor, shifts: Sequence[int], dims: Sequence[int]) -> Tensor:
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(dims) == 0 and len(shifts) == 1 and (self._array.size or self._array.ndim != 1):
        return _owned(np.roll(resolved(self), shifts[0]), self)
    if len(dims) == 0 and len(shifts) == 1:
        return _owned(self._array, self, dense_strides_like(self._array.shape, self.strides))
    if len(shifts) != len(dims):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )  # fmt: skip
    if not self._array.size:
        return _owned(self._array, self, dense_strides_like(self._array.shape, self.strides))
    wrapped = [wrap_dim(d, self._array.ndim, False) for d in dims]
    array = resolved(self)
    if not array.ndim:
        return _owned(array, self)
    return _owned(np.roll(array, tuple(shifts), tuple(wrapped)), self, _rolled_strides(self, shifts, wrapped))


def _rolled_strides(self: Tensor, shifts: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    """The strides of what is cut in two along each dim, one after the other, and joined again the other way round."""
    shape, strides = self._array.shape, self.strides
    for shift, dim in zip(shifts, dims, strict=True):
        cut = -shift % shape[dim]
        parts = [(*shape[:dim], size, *shape[dim + 1 :]) for size in (shape[dim] - cut, cut)]
        last = all(suggests_channels_last(part, strides) for part in parts)
        strides = channels_last_strides(shape) if last else contiguous_strides(shape)
    return strides


roll = define(
    "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    doc="A copy with the elements moved along; what leaves at the end comes in at the start.",
    run=_roll,
    grads={"self": lambda grad, shifts, dims: grad.roll(tuple(-s for s in reversed(shifts)), tuple(reversed(dims)))},
    samples=[((3, 4), (1,), (0,))],
)


def _rot90(self: Tensor, k: int, dims: Sequence[int]) -> Tensor:
    ndim = self._array.ndim
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    a, b = (wrap_dim(d, ndim) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    array, strides = resolved(self), dense_strides_like(self._array.shape, self.strides)
    swapped = list(range(ndim))
    swapped[a], swapped[b] = b, a
    if k % 4 == 0:
        return _owned(array, self)
    if k % 4 == 2:
        return _owned(np.flip(array, (a, b)), self, strides)
    flipped = np.flip(array, b if k % 4 == 1 else a)
    return _owned(flipped.transpose(swapped), self, [strides[d] for d in swapped])


define(
    "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor",
    doc="A copy turned by 90 degrees k times, in the plane of two dims.",
    run=_rot90,
    grads={"self": lambda grad, k, dims: grad.rot90(-k, dims)},
    samples=[((3, 4),)],
)


def _repeat(self: Tensor, repeats: Sequence[int]) -> Tensor:
    array = resolved(self)
    if len(repeats) < array.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    for count in repeats:
        if count < 0:
            shape = [n * r for n, r in zip((1,) * (len(repeats) - array.ndim) + array.shape, repeats, strict=True)]
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {shape}")
    return _owned(np.tile(array, tuple(repeats)), self)


def _repeat_grad(grad: Tensor, repeats: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Sum over the repetitions: every dim is split into (repetition, size) and the repetitions are summed."""
    sizes = (1,) * (len(repeats) - len(sizes)) + tuple(sizes)
    kept = len(sizes) - len(repeats)
    if 0 in repeats:
        return grad.new_zeros(sizes[kept:])  # type: ignore[no-any-return]
    shape = [n for pair in zip(repeats, sizes, strict=True) for n in pair]
    return grad.reshape(shape).sum(tuple(range(0, len(shape), 2)))  # type: ignore[no-any-return]


repeat = define(
    "repeat(Tensor self, SymInt[] repeats) -> Tensor",
    doc="Copies of the tensor one after the other along every dim.",
    run=_repeat,
    grads={"self": lambda grad, repeats, self_sym_sizes: _repeat_grad(grad, repeats, self_sym_sizes)},
    samples=[((2, 3), (2, 2))],
    function=False,
)


def _tile(self: Tensor, dims: Sequence[int]) -> Tensor:
    missing = self._array.ndim - len(dims)
    return repeat.call(self, (1,) * max(missing, 0) + tuple(dims))  # type: ignore[no-any-return]


define(
    "tile(Tensor self, SymInt[] dims) -> Tensor",
    doc="Copies of the tensor; missing dims count as 1.",
    composite=_tile,
    samples=[((2, 3), (2,))],
)


def _counts(repeats: Tensor) -> Array:
    if is_meta(repeats):
        raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
    if repeats.dtype not in (int64, int32):
        raise not_implemented("repeat_interleave_cpu", repeats.dtype)
    if repeats._array.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if (repeats._array < 0).any():
        raise RuntimeError("repeats can not be negative")
    return repeats._array


define(
    "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    doc="The index of every element, as often as the element says.",
    run=lambda repeats, output_size: fresh(
        np.repeat(np.arange(repeats._array.size), _counts(repeats)).astype(repeats.dtype.np), repeats.dtype
    ),
    method=False,
)


def _interleave_by_tensor(self: Tensor, repeats: Tensor, dim: int | None = None, output_size: int | None = None) -> Any:
    source = reshape.call(self, (-1,)) if dim is None else self
    if repeats._array.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    along = wrap_dim(0 if dim is None else dim, source._array.ndim, scalar=False)
    size = source._array.shape[along]
    if repeats._array.ndim == 0 or repeats._array.size == 1:
        repeats = expand_.call(reshape.call(repeats, (1,)), (size,))
    elif repeats._array.size != size:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats._array.size} and "
            f"input.size({dim or 0}) = {size}"
        )
    whole = repeats.dtype in (int64, int32)
    if output_size is not None and size and whole and output_size != repeats._array.sum():
        raise RuntimeError("allocated size does not match required size")
    index = fresh(np.repeat(np.arange(size), _counts(repeats)), int64, self.device)
    if source._conj:
        return source.conj().index_select(along, index).conj()
    return source.index_select(along, index)


def _interleave_by_int(self: Tensor, repeats: int, dim: int | None = None, output_size: int | None = None) -> Any:
    source = reshape.call(self, (-1,)) if dim is None else self
    along = wrap_dim(0 if dim is None else dim, source._array.ndim)
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if not source._array.ndim:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    shape = source._array.shape
    if output_size is not None and output_size != (count := shape[along] * repeats):
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {count} but got {output_size}")
    spread = expand_.call(unsqueeze.call(source, along + 1), (*shape[: along + 1], repeats, *shape[along + 1 :]))
    joined = (*shape[:along], shape[along] * repeats, *shape[along + 1 :])
    return view.call(_row_major_clone(spread), joined)


def _row_major_clone(tensor: Tensor) -> Tensor:
    return clone.call(tensor, contiguous_format)  # type: ignore[no-any-return]


define(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
    doc="Every element of a dim as often as repeats says.",
    composite=_interleave_by_tensor,
)
define(
    "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
    doc="Every element of a dim so many times.",
    composite=_interleave_by_int,
)


# ---- diagonals ---------------------------------------------------------------------------------------


def _diag_embed(self: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    ndim = self._array.ndim + 1
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = self._array.shape[-1] + abs(offset)
    shape = list(self._array.shape[:-1])
    for dim in sorted((first, second)):
        shape.insert(dim, size)
    whole = np.zeros(shape, self.dtype.np)
    np.moveaxis(whole, (first, second), (-2, -1))[..., *_along(self._array.shape[-1], offset)] = resolved(self)
    return fresh(canonical(whole), self.dtype, self.device)


def _along(length: int, offset: int) -> tuple[Array, Array]:
    steps = np.arange(length)
    return steps + max(-offset, 0), steps + max(offset, 0)


diag_embed = define(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    doc="Matrices with the last dim on their diagonal.",
    run=_diag_embed,
    grads={"self": lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2)},
    samples=[((3,),)],
)


def _diag(self: Tensor, diagonal: int = 0) -> Tensor:
    ndim = self._array.ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    if ndim == 1:
        return diag_embed.call(self, diagonal, -2, -1)  # type: ignore[no-any-return]
    return COPIES["diagonal"].call(self, diagonal, 0, 1)  # type: ignore[no-any-return]


define(
    "diag(Tensor self, int diagonal=0) -> Tensor",
    doc="A matrix with the vector on its diagonal, or the diagonal of a matrix.",
    composite=_diag,
    samples=[((3, 3),), ((3,),)],
)
define(
    "diagflat(Tensor self, int offset=0) -> Tensor",
    doc="A matrix with the elements on its diagonal.",
    composite=lambda self, offset=0: diag_embed.call(self.contiguous().view(-1), offset, -2, -1),
)
