"""Tensors put together: cat, stack and their kin, block_diag, cartesian_prod, combinations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.one_device import one_device
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.promote import result_type
from stridescope.engine.dispatch.run import cast, laid_out, resolved
from stridescope.engine.dtype import bool_, dtype
from stridescope.engine.layout import (
    channels_last_strides,
    contiguous_strides,
    suggests_channels_last,
    view_strides,
    wrap_dim,
)
from stridescope.engine.ops.views_shape import FUNCTIONS as SHAPES
from stridescope.engine.ops.views_split import unbind
from stridescope.engine.tensor import Tensor, bump_version, canonical, dense, fresh


def _skipped(tensor: Tensor) -> bool:
    """cat passes over 1-d empty tensors, whatever the shape of the others."""
    return tuple(tensor._array.shape) == (0,)


def _checked(tensors: Sequence[Tensor], dim: int) -> tuple[list[Tensor], int]:
    """The tensors that count, and the wrapped dim; raises as PyTorch does when they do not fit."""
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for position, tensor in enumerate(tensors):
        if not tensor._array.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    parts = [t for t in tensors if not _skipped(t)]
    if not parts:
        return [], 0
    first = parts[0]._array.shape
    dim = wrap_dim(dim, len(first))
    for position, tensor in enumerate(tensors):
        if not _skipped(tensor):
            _check_part(first, tensor._array.shape, dim, position)
    return parts, dim


def _check_part(first: tuple[int, ...], shape: tuple[int, ...], dim: int, position: int) -> None:
    if len(first) != len(shape):
        raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
    for along, (want, got) in enumerate(zip(first, shape, strict=True)):
        if along != dim and want != got:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size {want} but got size {got} for "
                f"tensor number {position} in the list."
            )


def _in_common(tensors: Sequence[Tensor]) -> tuple[dtype, list[Any]]:
    """The common dtype, and the tensors' values in it."""
    first = tensors[0].dtype
    kind = first if all(t.dtype is first for t in tensors) else result_type(*tensors)
    return kind, [resolved(t) if t.dtype is kind else cast(resolved(t), kind) for t in tensors]


def _joined_rows(tensors: Sequence[Tensor], dim: int) -> Tensor | None:
    """The result, the short way: of row-major tensors of one dtype on the CPU, with elements; else None."""
    arrays, kind = [], tensors[0].dtype if tensors else None
    for tensor in tensors:
        array = tensor._array
        if tensor.dtype is not kind or not tensor._plain or not array.size or not array.flags.c_contiguous:
            return None
        arrays.append(array)
    if kind is None or 1 in arrays[0].shape:
        return None
    try:
        return fresh(canonical(np.concatenate(arrays, dim)), kind)
    except ValueError:  # they do not fit; PyTorch says why in its own words
        return None


def _cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
    if (joined := _joined_rows(tensors, dim)) is not None:
        return joined
    parts, dim = _checked(tensors, dim)
    device = one_device(list(tensors))
    kind, arrays = _in_common(tensors)
    arrays = [a for t, a in zip(tensors, arrays, strict=True) if not _skipped(t)]
    if not parts:
        return fresh(canonical(np.empty((0,), kind.np)), kind, device)
    values = np.ascontiguousarray(np.concatenate(arrays, dim))
    last = all(suggests_channels_last(t._array.shape, t.strides) for t in tensors)
    strides = channels_last_strides(values.shape) if last else contiguous_strides(values.shape)
    return fresh(laid_out(values, strides), kind, device)


def _as_kind(part: Tensor, kind: dtype) -> Any:
    """A part of a gradient as its input's dtype: real inputs take the real part."""
    return part.real if part.dtype.is_complex and not kind.is_complex else part


def _cat_grad(grad: Tensor, sizes: Sequence[Any], kinds: Sequence[Any], dim: int) -> list[Any]:
    if any(shape != (0,) for shape in sizes):  # of empty ones alone any dim was taken
        dim = wrap_dim(dim, grad._array.ndim)
    found, start = [], 0
    for shape, kind in zip(sizes, kinds, strict=True):
        if shape == (0,):
            found.append(empty := _as_kind(grad, kind).new_zeros((0,)))
            bump_version(empty)  # PyTorch fills it in place
            continue
        found.append(_as_kind(grad.narrow(dim, start, shape[dim]), kind))
        start += shape[dim]
    return found


cat = define(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    doc="The tensors one after the other along a dim.",
    run=_cat,
    out=Out(apart=True),
    grads={
        "tensors": lambda grad, tensors_sym_sizes, tensors_scalar_type, dim: _cat_grad(
            grad, tensors_sym_sizes, tensors_scalar_type, dim
        )
    },
)
for _name in ("concat", "concatenate"):
    define(
        f"{_name}(Tensor[] tensors, int dim=0) -> Tensor",
        doc="Another name of cat.",
        composite=lambda tensors, dim=0: cat.call(tensors, dim),
        same_as="cat",
    )


def _stack(tensors: Sequence[Tensor], dim: int) -> Tensor:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0]._array.shape
    dim = wrap_dim(dim, len(first) + 1)
    for position, tensor in enumerate(tensors):
        if tensor._array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(tensor._array.shape)} at entry {position}"
            )
    kind, arrays = _in_common(tensors)
    stacked = canonical(np.ascontiguousarray(np.stack(arrays, dim)))
    if dim < len(first) and all(suggests_channels_last(first, t.strides) for t in tensors):
        stacked = laid_out(stacked, _split_strides(first, dim, len(tensors)))
    return fresh(stacked, kind, one_device(list(tensors)))


def _stack_into(tensors: Sequence[Tensor], dim: int, out: Tensor) -> Tensor:
    """What ``out=`` is resized to is row-major, whatever the layout of the tensors."""
    stacked = _stack(tensors, dim)
    return fresh(dense(stacked._array), stacked.dtype, stacked.device)


def _split_strides(shape: tuple[int, ...], dim: int, count: int) -> tuple[int, ...]:
    """The strides of tensors that are joined in channels_last along a dim, which is then split."""
    joined = (*shape[:dim], count * shape[dim], *shape[dim + 1 :])
    whole = (*shape[:dim], count, *shape[dim:])
    return view_strides(joined, channels_last_strides(joined), whole) or contiguous_strides(whole)


def _stack_grad(grad: Tensor, kinds: Sequence[Any], dim: int) -> list[Any]:
    parts = unbind.call(grad, dim)
    return [_as_kind(part, kind) for part, kind in zip(parts, kinds, strict=True)]


stack = define(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    doc="The tensors side by side along a new dim.",
    run=_stack,
    out=Out(_stack_into),
    grads={"tensors": lambda grad, tensors_scalar_type, dim: _stack_grad(grad, tensors_scalar_type, dim)},
)


def _stacked(name: str, least: int, doc: str) -> None:
    """Declare hstack, vstack or dstack: cat after atleast_nd."""
    widen = SHAPES[f"atleast_{least}d"]

    def function(tensors: Sequence[Tensor]) -> Any:
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        wide = widen(list(tensors))
        dim = {"hstack": 0 if wide[0]._array.ndim == 1 else 1, "dstack": 2}.get(name, 0)
        return cat.call(wide, dim)

    define(f"{name}(Tensor[] tensors) -> Tensor", doc=doc, composite=function)


_stacked("hstack", 1, "The tensors side by side, along the second dim.")
_stacked("vstack", 2, "The tensors one below the other.")
_stacked("row_stack", 2, "Another name of vstack.")
_stacked("dstack", 3, "The tensors one behind the other.")


def _column_stack(tensors: Sequence[Tensor]) -> Any:
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    columns = [x if x._array.ndim > 1 else x.reshape((x._array.size, 1)) for x in tensors]
    return cat.call(columns, 1)


define("column_stack(Tensor[] tensors) -> Tensor", doc="The tensors as columns side by side.", composite=_column_stack)


def _blocks(tensors: Sequence[Tensor]) -> Tensor:
    for position, tensor in enumerate(tensors):
        if tensor._array.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has "
                f"{tensor._array.ndim} dimensions"
            )
    arrays = [np.atleast_2d(resolved(t)) for t in tensors]
    kind = result_type(*tensors)
    whole = np.zeros((sum(a.shape[0] for a in arrays), sum(a.shape[1] for a in arrays)), kind.np)
    row = column = 0
    for array in arrays:
        whole[row : row + array.shape[0], column : column + array.shape[1]] = array
        row, column = row + array.shape[0], column + array.shape[1]
    return fresh(canonical(whole), kind, one_device(list(tensors)))


def _blocks_grad(grad: Tensor, sizes: Sequence[Any], kinds: Sequence[Any]) -> list[Any]:
    found, row, column = [], 0, 0
    for shape, kind in zip(sizes, kinds, strict=True):
        high, wide = (1, 1, *shape)[-2:] if tuple(shape) != (0,) else (0, 0)  # forward it is a row, as in PyTorch
        part = grad[row : row + high, column : column + wide]  # a row stays one: the engine sums it to its shape
        if len(shape) != 2:
            part = part.squeeze(-1) if len(shape) and high else part.reshape(shape)
        found.append(_as_kind(part, kind))
        row, column = row + high, column + wide
    return found


block_diag = define(
    "block_diag(Tensor[] tensors) -> Tensor",
    doc="The matrices along the diagonal of a larger one.",
    run=_blocks,
    grads={
        "tensors": lambda grad, tensors_sym_sizes, tensors_scalar_type: _blocks_grad(
            grad, tensors_sym_sizes, tensors_scalar_type
        )
    },
    function=False,
)


def _block_diag(*tensors: Any) -> Tensor:
    """``torch.block_diag``: the matrices along the diagonal of a larger one."""
    return block_diag.call(tensors)  # type: ignore[no-any-return]


def _chunk_dim(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> int:
    """The dim to cut, counted from the front; raises RuntimeError when the tensors do not go together."""
    name = "_chunk_cat expects"
    if num_chunks < 1:
        raise RuntimeError(f"{name} positive num_chunks")
    if not tensors:
        raise RuntimeError(f"{name} a non-empty input tensor list")
    first = tensors[0]
    if any(not t._array.size for t in tensors):
        raise RuntimeError(f"{name} non-empty tensor")
    if any(t.dtype is not first.dtype for t in tensors):
        raise RuntimeError(f"{name} all input tensors with the same dtype")
    if dim < 0 and len({t._array.ndim for t in tensors}) > 1:
        raise RuntimeError(f"{name} non-negative dim when input tensors have different ndims")
    dim = wrap_dim(dim, first._array.ndim) if dim < 0 else dim
    if any(dim >= t._array.ndim for t in tensors):
        raise RuntimeError(f"{name} dim < ndim for all input tensors")
    if any(t._array.shape[:dim] != first._array.shape[:dim] for t in tensors):
        raise RuntimeError(f"{name} same sizes of 0,...,dim-1 dimensions for all tensors")
    return dim


def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    dim = _chunk_dim(tensors, dim, num_chunks)
    parts = []
    for tensor in tensors:
        array = resolved(tensor)
        missing = -array.shape[dim] % num_chunks
        padded = np.pad(array, [(0, missing if d == dim else 0) for d in range(array.ndim)])
        parts.append(padded.reshape((*array.shape[:dim], num_chunks, -1)))
    joined = np.ascontiguousarray(np.concatenate(parts, dim + 1))
    return fresh(joined, tensors[0].dtype, tensors[0].device)


define(
    "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
    doc="Each tensor cut into chunks along a dim, filled up with zeros; then the chunks of the same number in a row.",
    run=_chunk_cat,
    method=False,
)


def _check_vector(tensor: Tensor) -> None:
    if tensor._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor._array.shape)}")


def _cartesian_prod(*tensors: Any) -> Any:
    """``torch.cartesian_prod``: all combinations of one element of each, as rows."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    for tensor in given:
        _check_vector(tensor)
    if len(given) == 1:
        return given[0]
    grids = SHAPES["meshgrid"](*given, indexing="ij")
    return stack.call([grid.flatten() for grid in grids], 1)


def _combinations(self: Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    _check_vector(self)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return self.new_empty((0,))
    size = self._array.size
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = np.array(list(pick(range(size), r)), np.int64).reshape(-1, r)
    mask = np.zeros((size,) * r, np.bool_)
    mask[tuple(chosen.T)] = True
    kept = fresh(mask, bool_, self.device)
    grids = SHAPES["meshgrid"](*[self] * r, indexing="ij")
    return stack.call([grid.masked_select(kept) for grid in grids], 1)


define(
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
    doc="All choices of r elements, as rows.",
    composite=_combinations,
    method=False,
)
FUNCTIONS: dict[str, Any] = {"block_diag": _block_diag, "cartesian_prod": _cartesian_prod}
