"""Gathering by index tensors: index, index_put, and what they share with masks.

A bool index counts as the positions of its true elements. The index tensors are broadcast together; their dims stand
where the indexed dims stood when these are neighbours, else in front. Results have the strides that PyTorch's
TensorIterator gives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.overlap import MASKED_FILL, refuse_internal_overlap, refuse_shared, warn_of_expanded
from stridescope.engine.dispatch.run import cast, laid_out, resolved, stored
from stridescope.engine.dtype import bool_, scalar_name, uint8
from stridescope.engine.layout import (
    contiguous_strides,
    dense_strides_like,
    iterator_order,
    iterator_strides,
    strided,
    view_strides,
)
from stridescope.engine.ops.number_range import check_number
from stridescope.engine.ops.valueless import need_values
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, canonical, fresh
from stridescope.engine.warn import internal, warn

Indices = Sequence[Tensor | None]


def _within_bounds(self: Tensor, places: list[Array | None], order: Sequence[int]) -> list[Array | None]:
    """The positions, checked; zeros in their place where nothing is read, since then any position will do.

    ``order`` lists the dims of the positions from the innermost outwards, as the kernel walks them.
    """
    if _check_bounds(self._array.shape, places, order):
        return places
    return [None if place is None else np.zeros_like(place) for place in places]


def _opened(self: Tensor, indices: Indices) -> list[Array | None]:
    """The indices as arrays of positions, one per dim of ``self``; masks opened up."""
    found: list[Array | None] = []
    shape = self._array.shape
    for index in indices:
        if index is None:
            found.append(None)
        elif index.dtype.name in ("bool", "uint8"):
            found.extend(_mask_positions(index, shape, len(found)))
        elif index.dtype.name in ("int64", "int32"):
            found.append(index._array)
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if len(found) > len(shape):
        raise IndexError(
            f"too many indices for tensor of dimension {len(shape)} (got {len(found)})"
        )  # fmt: skip
    return found


def _mask_positions(mask: Tensor, shape: Sequence[int], dim: int) -> list[Array]:
    if mask.dtype.name == "uint8":
        warn(
            internal(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                "aten/src/ATen/native/IndexingUtils.h:37",
            )
        )
    _check_mask(mask, shape, dim)
    need_values("nonzero", mask)
    return list(np.nonzero(mask._array)) if mask._array.ndim else [np.zeros(int(mask._array != 0), np.int64)]


def _check_mask(mask: Tensor, shape: Sequence[int], dim: int) -> None:
    for along, size in enumerate(mask._array.shape):
        if dim + along >= len(shape) or shape[dim + along] != size:
            raise IndexError(
                f"The shape of the mask {list(mask._array.shape)} at index {along} does not match the shape of the "
                f"indexed tensor {list(shape)} at index {dim + along}"
            )


def _check_bounds(shape: Sequence[int], indices: Sequence[Array | None], order: Sequence[int]) -> bool:
    """Refuse positions outside the tensor; False when nothing is read, so that no position was looked at.

    Named is the first one that the kernel meets; of several indices of one element the first.
    """
    _refuse_empty_dims(shape, indices)
    unread = 0 in [n for dim, n in enumerate(shape) if dim >= len(indices) or indices[dim] is None]
    given = [(index, shape[dim]) for dim, index in enumerate(indices) if index is not None]
    if unread:
        return False
    wrong = [(index < -size) | (index >= size) for index, size in given]
    if any(w.any() for w in wrong):
        walked = tuple(reversed(order))
        first = int(np.argmax(np.logical_or.reduce(wrong).transpose(walked).ravel()))
        number = next(n for n, w in enumerate(wrong) if w.transpose(walked).ravel()[first])
        index, size = given[number]
        bad = int(index.transpose(walked).ravel()[first])
        raise IndexError(f"index {bad} is out of bounds for dimension {number} with size {size}")
    return True


def _refuse_empty_dims(shape: Sequence[int], indices: Sequence[Array | None]) -> None:
    for size, index in zip(shape, indices, strict=False):
        if index is not None and index.size and not size:
            raise IndexError("index is out of bounds for dimension with size 0")


def _as_int64(index: Array) -> Array:
    """The positions as int64; converted ones lie as ``to`` lays them out."""
    if index.dtype == np.int64:
        return index
    strides = dense_strides_like(index.shape, tuple(s // index.itemsize for s in index.strides))
    return laid_out(index.astype(np.int64), strides)


def _broadcast(indices: list[Array | None]) -> list[Array | None]:
    given = [index for index in indices if index is not None]
    try:
        common = np.broadcast_shapes(*(index.shape for index in given))
    except ValueError:
        shapes = ", ".join(str(list(index.shape)) for index in given)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    return [None if index is None else _as_int64(np.broadcast_to(index, common)) for index in indices]


def key_of(indices: Sequence[Array | None]) -> tuple[Any, ...]:
    """The indices as NumPy takes them."""
    return tuple(slice(None) if index is None else index for index in indices)


class _Walk:
    """How the kernel walks what the index tensors choose of a tensor: by its strides seen past them, then by theirs.

    Attributes:
        shape: the dims of the result; those of the index tensors stand at ``start``.
    """

    def __init__(self, self_: Tensor, indices: Sequence[Array | None]) -> None:
        shape, strides = self_._array.shape, self_.strides
        used = [d for d, index in enumerate(indices) if index is not None]
        self.given = [index for index in indices if index is not None]
        gathered = self.given[0].shape
        kept = [d for d in range(len(shape)) if d not in used]
        together = used == list(range(used[0], used[-1] + 1))
        before = [d for d in kept if d < used[0]] if together else []
        after = [d for d in kept if d not in before]
        self.start, self.rest = len(before), len(after)
        self.shape = (*(shape[d] for d in before), *gathered, *(shape[d] for d in after))
        self._own = (*(strides[d] for d in before), *(0,) * len(gathered), *(strides[d] for d in after))

    def order(self, written: Array | None = None) -> list[int]:
        """The dims from the innermost outwards; of what is ``written``, in this shape, the strides count second."""
        operands = [self._own, *(_index_strides(index, self.shape, self.start, self.rest) for index in self.given)]
        if written is not None:
            operands.insert(1, tuple(s // written.itemsize for s in written.strides))
        return iterator_order([self.shape], operands)

    def of_indices(self, order: Sequence[int]) -> list[int]:
        """The dims of the index tensors alone, in the same order."""
        places = [dim - self.start for dim in order]
        return [place for place in places if 0 <= place < self.given[0].ndim]

    def strides(self, order: Sequence[int]) -> tuple[int, ...]:
        """The strides of a new result; empty operands of one shape count as contiguous."""
        whole = [(1,) * self.start + index.shape + (1,) * self.rest == self.shape for index in self.given]
        if 0 in self.shape and all(whole):
            return contiguous_strides(self.shape)
        return iterator_strides(self.shape, order)


def _index_strides(index: Any, full: tuple[int, ...], before: int, after: int) -> tuple[int, ...]:
    """The strides of an index tensor that has been viewed to stand among the other dims: 0 where it repeats."""
    shape = (1,) * before + index.shape + (1,) * after
    strides = view_strides(index.shape, tuple(s // 8 for s in index.strides), shape) or contiguous_strides(shape)
    return tuple(0 if n == 1 != whole else s for n, s, whole in zip(shape, strides, full, strict=True))


def _simple(self: Tensor, indices: Indices) -> Array | None:
    """The elements for the two commonest keys of a row-major tensor: one vector of positions, one mask of its shape."""
    first, array = indices[0], self._array
    if len(indices) != 1 or first is None or not array.flags.c_contiguous or self._conj or self._neg or not array.size:
        return None
    if 1 in array.shape:  # the order of such dims depends on their strides
        return None
    if first.dtype.name == "bool":
        need_values("nonzero", first)
        return array[first._array] if first._array.shape == array.shape and array.ndim else None
    places = first._array
    if places.ndim != 1 or places.dtype != np.int64 or not places.size:
        return None
    size = array.shape[0]
    return None if places.min() < -size or places.max() >= size else array[places]


def _index(self: Tensor, indices: Indices) -> Tensor:
    simple = _simple(self, indices) if indices else None
    if simple is not None:
        return fresh(canonical(simple), self.dtype, self.device)
    array = resolved(self)
    places = _broadcast(_opened(self, indices))
    if all(p is None for p in places):
        raise IndexError("at least one index must be provided")
    walk = _Walk(self, places)
    order = walk.order()
    within = _within_bounds(self, places, walk.of_indices(order))
    values = np.ascontiguousarray(array[key_of(within)]).reshape(walk.shape)
    return fresh(laid_out(values, walk.strides(order)), self.dtype, self.device)


index = define(
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    doc="Gathers the elements that the index tensors name.",
    run=_index,
    grads={"self": lambda grad, self_sym_sizes, indices: _index_grad(grad, self_sym_sizes, indices)},
    method=False,
    function=False,
)


def _fills_masks(indices: Indices, values: Tensor, accumulate: bool) -> bool:
    """Whether one value goes to all that one mask chooses: PyTorch carries that out as masked_fill_, for any dtype."""
    given = [i.dtype for i in indices if i is not None]
    return values._array.size == 1 and not accumulate and len(given) == 1 and given[0] in (bool_, uint8)


def _put_before(
    self: Tensor, places: Sequence[Array | None], source: Array, accumulate: bool, walk: _Walk, order: Sequence[int]
) -> None:
    """Write what comes before the first position outside the tensor, as PyTorch does before it raises."""
    spread, walked = np.indices(source.shape, sparse=True), tuple(reversed(order))
    kept = iter([*range(walk.start), *range(source.ndim - walk.rest, source.ndim)])
    source, whole = source.transpose(walked), []
    for dim in range(self._array.ndim):
        place = places[dim] if dim < len(places) else None
        if place is not None:
            place = place.reshape((*place.shape, *(1,) * walk.rest))
        part = np.broadcast_to(spread[next(kept)] if place is None else place, walk.shape)
        whole.append(part.transpose(walked).ravel())
    sizes = self._array.shape
    wrong = np.logical_or.reduce([(w < -n) | (w >= n) for w, n in zip(whole, sizes, strict=True)])
    before = int(np.argmax(wrong))
    for key, value in zip(zip(*(w[:before] for w in whole), strict=True), source.ravel()[:before], strict=True):
        self._array[key] = self._array[key] + value if accumulate else value


def put(self: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> None:
    """Write ``values`` at the indices; equal positions add up when ``accumulate``."""
    if all(index is None for index in indices):
        raise RuntimeError("sym_strides() called on an undefined Tensor")  # of the index that PyTorch takes for given
    one_value = _fills_masks(indices, values, accumulate)
    if one_value:
        for place, mask in enumerate(indices):
            if mask is not None:
                _check_mask(mask, self._array.shape, place)
        if any(i is not None and i.dtype is uint8 for i in indices):
            _opened(self, indices)  # what does not fit is said first
            raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
        if self.dtype is not values.dtype:
            check_number(values._array.item(), self.dtype)
            values = fresh(cast(resolved(values), self.dtype), self.dtype, values.device)
    first = indices[0]
    plain = one_value and len(indices) == 1 and not values._array.ndim
    if plain and first is not None and first._array.shape == self._array.shape:
        self._array[first._array] = stored(self, resolved(values))
        return
    places = _broadcast(_opened(self, indices))
    _refuse_empty_dims(self._array.shape, places)
    walk = _Walk(self, places)
    source = resolved(values)
    try:
        source = np.broadcast_to(source, walk.shape)
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(source.shape)} cannot be broadcast to indexing result of "
            f"shape {list(walk.shape)}"
        ) from None
    if values.dtype is not self.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {scalar_name(self.dtype)} for the "
            f"destination and {scalar_name(values.dtype)} for the source."
        )
    order, source = walk.order(source), stored(self, source)
    try:
        places = _within_bounds(self, places, walk.of_indices(order))
    except IndexError:
        _put_before(self, places, source, accumulate, walk, order)
        raise
    key = key_of(places)
    if not accumulate:
        self._array[key] = source
    elif self.dtype.name == "bool":
        np.logical_or.at(self._array, key, source)
    else:
        np.add.at(self._array, key, source)


def _index_put(self: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Tensor:
    from stridescope.engine.ops.copying import copied

    result = copied(self, "index_put")
    put(result, indices, values, accumulate)
    return result


def _index_put_in_place(self: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Tensor:
    if self._conj or self._neg:  # PyTorch writes into a clone, and copies that
        put(self.clone(), indices, values, accumulate)
        refuse_internal_overlap(self)
        put(self, indices, values, accumulate)
        return self
    warn_of_expanded(self, "index_put_", "tensor[indices] = tensor", 976)
    if not _fills_masks(indices, values, accumulate):
        for operand in (values, *(i for i in indices if i is not None)):
            refuse_shared(self, operand)
    else:
        warn_of_expanded(self, *MASKED_FILL)  # PyTorch carries this case out as masked_fill_
    put(self, indices, values, accumulate)
    return self


def _index_grad(grad: Tensor, sizes: tuple[int, ...], indices: Indices) -> Tensor:
    zeros = grad.new_zeros(sizes, dtype=grad.dtype, layout=strided, device=grad.device)
    return index_put_impl.call(zeros, indices, grad, True, True)  # type: ignore[no-any-return]


def _own_grad(grad: Tensor, indices: Indices, accumulate: bool) -> Tensor:
    return grad if accumulate else index_put.call(grad, indices, grad.new_zeros((1,)), False)


_PUT_GRADS: dict[str, Any] = {
    "self": lambda grad, indices, accumulate: _own_grad(grad, indices, accumulate),
    "values": lambda grad, indices: index.call(grad, indices),
}
index_put = define(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    doc="A copy with values written where the index tensors point.",
    run=_index_put,
    grads=_PUT_GRADS,
)
index_put_ = define(
    "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
    doc="Writes values where the index tensors point.",
    run=_index_put_in_place,
    grads=_PUT_GRADS,
    node="IndexPutBackward0",
)
index_put_impl = define(
    "_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) "
    "-> Tensor(a!)",
    doc="Writes values where the index tensors point.",
    run=lambda self, indices, values, accumulate, unsafe: _index_put_in_place(self, indices, values, accumulate),
    grads=_PUT_GRADS,
    node="IndexPutImplBackward0",
    method=False,
)


def _within(self: Tensor, indices: Indices) -> list[Tensor | None]:
    """The indices pulled into the tensor: what is masked out may point anywhere."""
    found: list[Tensor | None] = []
    for size, index in zip(self._array.shape, indices, strict=False):
        if index is not None:
            index = fresh(np.clip(index._array, -size, size - 1), index.dtype, index.device)
        found.append(index)
    return found


def _unsafe_masked(self: Tensor, mask: Tensor, indices: Indices, fill: Any) -> Tensor:
    if self._array.size == 0:
        shape = np.broadcast_shapes(*(i._array.shape for i in indices if i is not None), mask._array.shape)
        return fresh(np.full(shape, fill, self.dtype.np), self.dtype, self.device)
    taken = _index(self, _within(self, indices))
    outside = np.broadcast_to(~mask._array.astype(np.bool_), taken._array.shape)
    taken._array[outside] = fill
    return taken


def _unsafe_put(self: Tensor, mask: Tensor, indices: Indices, values: Tensor) -> Tensor:
    if not self._array.size:
        return fresh(self._array.copy(), self.dtype, self.device)
    kept = np.where(mask._array.astype(np.bool_), resolved(values), 0).astype(self.dtype.np)
    return _index_put(self, _within(self, indices), fresh(kept, self.dtype, self.device), True)


unsafe_masked_index: Op = define(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    doc="index where the mask is true, a fill value elsewhere.",
    run=_unsafe_masked,
    grads={
        "self": lambda grad, self_sym_sizes, mask, indices: unsafe_masked_put.call(
            grad.new_zeros(self_sym_sizes), mask, indices, grad
        )
    },
    method=False,
)
unsafe_masked_put: Op = define(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
    doc="A copy with values added where the mask is true.",
    run=_unsafe_put,
    grads={
        "self": lambda grad: grad,
        "values": lambda grad, mask, indices: unsafe_masked_index.call(grad, mask, indices, 0),
    },
    method=False,
)
