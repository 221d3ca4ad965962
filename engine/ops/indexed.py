"""Ops that take a list of indices along one dim (index_add, index_copy, …), and take and put on the flat tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.halfway import halfway, tell_written
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.overlap import is_lazy, refuse_overlap, refuse_shared, warn_of_expanded, writable
from stridescope.engine.dispatch.run import into, laid_out, on_copy, resolved
from stridescope.engine.dtype import BOOL, COMPLEX, FROM_NUMPY, bool_, int32, int64, scalar_name, uint8
from stridescope.engine.kernels.fused import half_fused
from stridescope.engine.layout import Layout, broadcast_shapes, dense_strides_like, wrap_dim
from stridescope.engine.ops.arithmetic import plus_product, scaled
from stridescope.engine.ops.number_range import number_of
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.ops.scatter import at_least_1d, identity, places, reduce_into, scatter_add, scatter_reduce_grads
from stridescope.engine.ops.views import expand_
from stridescope.engine.ops.views_select import check_fits
from stridescope.engine.ops.walked import first_wrong, some, walk
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, fresh
from stridescope.engine.warn import internal, warn, warn_once


def _rows(array: Array, dim: int) -> Array:
    """The array with ``dim`` first; shares memory."""
    return np.moveaxis(at_least_1d(array), dim, 0)


def _along(name: str, self: Tensor, dim: int, index: Tensor, source: Tensor) -> int:
    """The dim of index_add and index_reduce; what they do not take is refused with their texts."""
    dim = wrap_dim(dim, self._array.ndim)
    if index._array.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, but got dim: {index._array.ndim} with type: "
                         f"{scalar_name(index.dtype)} and size: {list(index.shape)}")  # fmt: skip
    if index.dtype not in (int64, int32):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {scalar_name(index.dtype)}")
    if self.dtype is not source.dtype:
        raise RuntimeError(
            f"{name}(): self ({scalar_name(self.dtype)}) and source ({scalar_name(source.dtype)}) must have the same "
            "scalar type"
        )
    size = source._array.shape[dim] if source._array.ndim else 1
    if size != index._array.size and not source._array.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")  # whose size the text would name
    if size != index._array.size:
        raise RuntimeError(
            f"{name}(): Number of indices ({index._array.size}) should be equal to source.size(dim): ({size}), for "
            f"dim: {dim}"
        )
    own = [n for d, n in enumerate(self.shape) if d != dim]
    other = [n for d, n in enumerate(source.shape) if d != dim]
    if own != other and (source._array.ndim or self._array.ndim == 0) or source._array.ndim > self._array.ndim:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(self.shape)} source.shape = {list(source.shape)}"
        )
    return dim


def _in_bounds(self: Tensor, dim: int, where: Array) -> tuple[Array, IndexError | None]:
    """The slices that come before the first that is not there, and how that one is refused."""
    size = at_least_1d(self._array).shape[dim]
    stop = first_wrong(where, 0, size)
    return (where, None) if stop is None else (where[stop[0]], IndexError("index out of range in self"))


def _scatters(self: Tensor, dim: int, where: Array, alpha: Any) -> bool:
    """Whether PyTorch adds rows as scatter_add does, unscaled and saying which index is wrong: along an outer dim.

    Its indices are int64 then, and an ``alpha`` of True is not 1 to it.
    """
    plain = alpha == 1 and alpha is not True and where.dtype == np.int64
    return bool(plain and self._array.ndim > 1 and dim in (0, self._array.ndim - 1))


def _check_restrided(self: Tensor, dim: int, count: int) -> None:
    """Refuse ``count`` slices with a stride of 0 where no slice is."""
    self = _dense_copy(self) if is_lazy(self) else self
    sizes, strides = list(self.shape), list(self.strides)
    if sizes:
        sizes[dim], strides[dim] = count, 0
    check_fits(self.storage_, Layout(tuple(sizes), tuple(strides), self.offset), self._array.itemsize)


def _entries(self: Tensor, array: Array, dim: int, index: Tensor) -> Array:
    """Which slices of ``array``, where self's elements are, an op writes that walks the slices with a stride of 0."""
    where, rows = index._array.reshape(-1), _rows(array, dim)
    _check_restrided(self, dim, where.size)
    if 0 in rows.shape[1:]:
        return where[:0]
    return np.where(where < 0, where + rows.shape[0], where)


def _stopped(
    self: Tensor, array: Array, dim: int, index: Tensor, values: Any, prefix: str = "", negative: bool = True
) -> IndexError | None:
    """Write ``values`` up to the first wrong entry of the index, and say how that is refused; None where none is.

    ``values`` are a number, or a tensor that holds a slice for each entry. The kernel walks the elements of all
    slices, in the order in which they lie.
    """
    where, target = index._array.reshape(-1), at_least_1d(array)
    size = target.shape[dim]
    low = -size if negative else 0
    if first_wrong(where, low, size) is None or 0 in _rows(target, dim).shape[1:]:
        return None
    shape = tuple(where.size if d == dim else n for d, n in enumerate(target.shape))
    along = [1 if d == dim else 0 for d in range(target.ndim)]
    strides = [tuple(0 if d == dim else s for d, s in enumerate(self.strides or (0,))), tuple(along)]
    if isinstance(values, Tensor):
        strides.append(values.strides or (0,))
        values = resolved(values).reshape(shape)
    entries = np.broadcast_to(where.reshape([-1 if step else 1 for step in along]), shape)
    before, entry = first_wrong(entries, low, size, lambda: walk(shape, strides)) or (where, 0)
    place, chosen = some(places(np.where(entries < 0, entries + size, entries), dim), values, shape, before)
    target[place] = chosen
    return IndexError(f"{prefix}index {entry} is out of bounds for dimension {dim} with size {size}")


def _dense_copy(self: Tensor) -> Tensor:
    """What ``clone`` gives an op to write into: the values with nothing between them."""
    return fresh(laid_out(resolved(self).copy(), dense_strides_like(self.shape, self.strides)), self.dtype, self.device)


def _copy_of(self: Tensor) -> Array:
    return np.array(resolved(self), order="C")


def _index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any) -> Tensor:
    dim = _along("index_add_", self, dim, index, source)
    where = index._array.reshape(-1)
    if self._array.ndim > 1 and not self._array.size:
        where = where[:0]  # nothing is added, wherever it would go
    elif _scatters(self, dim, index._array, alpha) and first_wrong(where, 0, self._array.shape[dim]):
        sizes = [-1 if d == dim else 1 for d in range(self._array.ndim)]
        scatter_add.run(self, dim, index.view(sizes).expand(source.shape), source)  # type: ignore[misc]
    where, refused = _in_bounds(self, dim, where)
    result = _copy_of(self)
    rows, added = _rows(result, dim), _rows(resolved(source), dim)[: where.size]
    unscaled = _scatters(self, dim, index._array, alpha) or (alpha == 1 and self.dtype.category != COMPLEX)
    if not unscaled and result.ndim > 1:
        _add_slices(rows, where, added, alpha)
    else:
        ufunc = np.logical_or if result.dtype == np.bool_ else np.add
        ufunc.at(rows, where, added if unscaled else added * number_of(alpha, self.dtype))
    if refused is not None:
        raise halfway(refused, wrapped(result, self.dtype, self))
    return wrapped(result, self.dtype, self)


def _add_slices(rows: Array, where: Array, added: Array, alpha: Any) -> None:
    """Slice by slice as add does it: with its rounding, and a complex alpha of 1 multiplies infinities and -0."""
    kind = FROM_NUMPY[rows.dtype]
    halves = kind.is_floating_point and kind.itemsize == 2
    for at, row in zip(where, added, strict=True):
        if halves:
            rows[at] = half_fused(rows[at], row, number_of(alpha, kind), kind.np)
        else:
            rows[at] = plus_product(rows[at], row, alpha)


def _picked_like(grad: Tensor, dim: int, index: Tensor, source: Tensor, source_dim: int) -> Tensor:
    """The gradient of what was added: grad at the indices, in the source's shape."""
    if source_dim:
        return grad.index_select(dim, index).expand_as(source)  # type: ignore[no-any-return]
    return grad.index_select(dim, index.squeeze(0) if index._array.ndim else index)  # type: ignore[no-any-return]


define(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    doc="Adds source's slices to those that index names along a dim.",
    run=_index_add,
    grads={
        "self": lambda grad: grad,
        "source": lambda grad, dim, index, source, source_dim, alpha: scaled(
            _picked_like(grad, dim, index, source, source_dim), alpha
        ),
    },
    inplace=True,
)


def _need_index_reduce(self: Tensor, include_self: bool) -> None:
    """Refuse the bool and complex tensors that PyTorch's kernels refuse before they look at the indices."""
    if self.dtype.category not in (BOOL, COMPLEX):
        return
    if not include_self:
        raise not_implemented("index_reduce_func_exclude_input_init", self.dtype)
    if self._array.ndim < 2:
        raise not_implemented("index_func_", self.dtype)


def _begun(self: Tensor, result: Array, dim: int, index: Tensor, reduce: str) -> None:
    """Write the neutral element over the slices, as index_fill does: negative indices count from the end here."""
    _check_restrided(self, dim, index._array.size)
    if 0 in _rows(result, dim).shape[1:]:
        return
    neutral = identity(reduce, result)
    if (refused := _stopped(self, result, dim, index, neutral)) is not None:
        raise halfway(refused, wrapped(result, self.dtype, self))
    _rows(result, dim)[index._array.reshape(-1)] = neutral


def _reduced_rows(self: Tensor, dim: int, where: Array, reduce: str) -> tuple[Array, IndexError | None]:
    """The slices that index_reduce writes; refuses what the kernels refuse that carry out one row after the other."""
    if where.size and self._array.ndim > 1 and not self._array.shape[dim]:
        raise IndexError(f"select(): index 0 out of range for tensor of size {list(self.shape)} at dimension {dim}")
    if where.size and self.dtype.category == COMPLEX and reduce in ("amax", "amin"):
        if (refused := _in_bounds(self, dim, where[:1])[1]) is not None:
            raise refused
        raise not_implemented({"amax": "maximum_cpu", "amin": "minimum_cpu"}[reduce], self.dtype)
    where, refused = _in_bounds(self, dim, where)
    if where.size and refused is None and self.dtype.category == BOOL and reduce == "mean":
        raise not_implemented("div_floor_cpu", self.dtype)
    return where, refused


def _index_reduce(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool) -> Tensor:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    dim = _along("index_reduce_", self, dim, index, source)
    warn_once(internal("index_reduce() is in beta and the API may change at any time.",
                       "aten/src/ATen/native/TensorAdvancedIndexing.cpp:1523"))  # fmt: skip
    _need_index_reduce(self, include_self)
    result = _copy_of(self)
    if not include_self and index._array.size:
        _begun(self, result, dim, index, reduce)
    where, refused = _reduced_rows(self, dim, index._array.reshape(-1), reduce)
    if where.size:
        how = "sum" if refused is not None and reduce == "mean" else reduce  # what is not divided yet
        reduce_into(_rows(result, dim), where, _rows(resolved(source), dim)[: where.size], how, include_self)
    if refused is not None:
        raise halfway(refused, wrapped(result, self.dtype, self))
    return wrapped(result, self.dtype, self)


def _index_reduce_grads(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool,
    result: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    dim = wrap_dim(dim, self._array.ndim)
    shape = [-1 if d == dim else 1 for d in range(max(self._array.ndim, 1))]
    spread = index.view(shape).expand(source.shape) if source._array.ndim else index
    return scatter_reduce_grads(grad, self, dim, spread, source, reduce, include_self, result)


define(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    doc="Reduces source's slices into those that index names along a dim.",
    run=_index_reduce,
    grads={"self,source": _index_reduce_grads},
    inplace=True,
)


def _index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    dim = wrap_dim(dim, self._array.ndim)
    if index._array.ndim >= 2:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index._array.ndim})")
    if self._array.ndim and source._array.ndim and self._array.ndim != source._array.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source._array.ndim}), destination dimensionality ({self._array.ndim})"
        )
    if not source._array.ndim and index._array.size != 1:
        raise IndexError(
            f"index_copy_(): When source is scalar, index should have one element (got {index._array.size})"
        )
    if index.dtype is not int64:
        raise RuntimeError("index_copy_(): Expected a long tensor for index, but got " + scalar_name(index.dtype))
    if self.dtype is not source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{scalar_name(self.dtype)} and (source) {scalar_name(source.dtype)}"
        )
    count, size = index._array.size, (source._array.shape[dim] if source._array.ndim else 1)
    if count != size and source._array.ndim:
        raise IndexError(f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({size})")
    own = [n for d, n in enumerate(self.shape) if d != dim]
    other = [n for d, n in enumerate(source.shape) if d != dim]
    if own != other and source._array.ndim:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, own))} at dimension {dim} and source slice shape: {' '.join(map(str, other))} at "
            "dimension 0."
        )
    result = _copy_of(self)
    where = _entries(self, result, dim, index)
    if (refused := _stopped(self, result, dim, index, source, "index_copy_(): ", negative=False)) is not None:
        raise halfway(refused, wrapped(result, self.dtype, self))
    _rows(result, dim)[where] = _rows(resolved(source), dim)[: where.size]
    return wrapped(result, self.dtype, self)


for _mark, _alias, _run in (  # the first writes into a copy with a storage of its own
    ("", "", lambda self, dim, index, source: _index_copy(_dense_copy(self), dim, index, source)),
    ("_", "(a!)", into(_index_copy, apart=True)),
):
    define(
        f"index_copy{_mark}(Tensor{_alias} self, int dim, Tensor index, Tensor source) -> Tensor{_alias}",
        doc="Writes source's slices over those that index names along a dim.",
        run=_run,
        out=Out(apart=True),
        node="IndexCopyBackward0",
        grads={
            "self": lambda grad, dim, index: grad.index_fill(dim, index, 0),
            "source": lambda grad, dim, index, source, source_dim: _picked_like(grad, dim, index, source, source_dim),
        },
        function=not _mark,
    )


def _fill_rows(self: Tensor, array: Array, dim: int, index: Tensor, value: Any) -> None:
    """Write ``value`` over the slices of ``array``, which holds what ``self`` does."""
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value._array.ndim} dimension(s)."
            )
        value = value._array.item()
    if index.dtype is not int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if isinstance(value, complex) and not self.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    dim = wrap_dim(dim, self._array.ndim)
    if index._array.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    where, value = _entries(self, array, dim, index), number_of(value, self.dtype)
    if (refused := _stopped(self, array, dim, index, value)) is not None:
        tell_written(self)
        raise refused
    _rows(array, dim)[where] = value


def _index_fill(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    result = _dense_copy(self)
    _fill_rows(result, result._array, dim, index, value)
    return result


def _index_fill_into(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    if is_lazy(self):
        return on_copy(self, _index_fill_into, dim, index, value)
    warn_of_expanded(self, "index_fill_", "tensor[mask] = scalar", 1913)
    refuse_shared(self, index)
    _fill_rows(self, writable(self), dim, index, value)
    return self


for _overload, _kind, _number in (("int_Tensor", "Tensor", 1), ("int_Scalar", "Scalar", 0)):
    _grads: dict[str, Any] = {"self": lambda grad, dim, index: grad.index_fill(dim, index, 0)}
    if _kind == "Tensor":
        _grads["value"] = lambda grad, dim, index: grad.index_select(dim, index.unique()).sum()
    for _mark, _alias, _run in (("", "", _index_fill), ("_", "(a!)", _index_fill_into)):
        define(
            f"index_fill{_mark}.{_overload}(Tensor{_alias} self, int dim, Tensor index, {_kind} value) "
            f"-> Tensor{_alias}",
            doc="Writes one value over the slices that index names along a dim.",
            run=_run,
            node=f"IndexFillBackward{_number}",
            grads=_grads,
            function=not _mark,
        )

# ---- masked_scatter ----------------------------------------------------------------------------------------------


UINT8_MASK = (
    "masked_scatter_ received a mask with dtype torch.uint8, this behavior is now deprecated,please use a mask with "
    "dtype torch.bool instead."
)


def _masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    if self.dtype is not source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{scalar_name(self.dtype)} and {scalar_name(source.dtype)}"
        )
    shape = broadcast_shapes(mask.shape, self.shape)
    if mask.dtype is uint8:
        warn(internal(UINT8_MASK, "aten/src/ATen/native/TensorAdvancedIndexing.cpp:3130"))
    if mask.dtype is not bool_:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {scalar_name(mask.dtype)}"
        )
    result = np.array(np.broadcast_to(resolved(self), shape), order="C")
    chosen = np.broadcast_to(mask._array, shape)
    count = int(np.count_nonzero(chosen))
    given = resolved(source).reshape(-1)
    if source._array.size < count:
        result.reshape(-1)[np.flatnonzero(chosen)[: given.size]] = given
        raise halfway(
            RuntimeError("Number of elements of source < number of ones in mask"), wrapped(result, self.dtype, self)
        )
    result[chosen] = given[:count]
    return wrapped(result, self.dtype, self)


def _masked_source_grad(grad: Tensor, mask: Tensor, sizes: tuple[int, ...]) -> Tensor:
    chosen = grad.masked_select(mask)
    missing = int(np.prod(sizes)) - chosen._array.size
    if missing > 0:
        from stridescope.engine.ops.lookup import concatenated

        chosen = concatenated([chosen, grad.new_zeros((missing,))], 0)
    return chosen.view(sizes)  # type: ignore[no-any-return]


define(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    doc="Writes source's elements, one after the other, where the mask holds.",
    run=_masked_scatter,
    grads={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "source": lambda grad, mask, source_sym_sizes: _masked_source_grad(grad, mask, source_sym_sizes),
    },
)
_scatter_over = into(
    lambda self, mask, source: _masked_scatter(self, expand_.call(mask, self.shape), source), lenient=True
)


def _masked_scatter_into(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    refuse_overlap(self, ())  # the source may share memory with it
    return _scatter_over(self, mask, source)  # type: ignore[no-any-return]


define(
    "masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)",
    doc="Writes source's elements, one after the other, where the mask holds, in place.",
    run=_masked_scatter_into,
    node="MaskedScatterBackward0",
    grads={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "source": lambda grad, mask, source_sym_sizes: _masked_source_grad(grad, mask, source_sym_sizes),
    },
)
