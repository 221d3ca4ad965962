"""gather and scatter: reading and writing by an index tensor along a dim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.halfway import halfway
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import BOOL, FLOAT, dtype, int32, int64, scalar_name
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops.choice import where
from stridescope.engine.ops.number_range import number_of
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.ops.walked import first_wrong, some, walk_along
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor

REDUCES = ("sum", "prod", "mean", "amax", "amin")


def at_least_1d(array: Array) -> Array:
    """A 0-d array as one of a single element."""
    return array.reshape(1) if array.ndim == 0 else array


def places(index: Array, dim: int) -> tuple[Any, ...]:
    """NumPy's index of the elements that ``index`` names along ``dim``."""
    grid = np.ogrid[tuple(slice(0, n) for n in index.shape)]
    return tuple(index if d == dim else g for d, g in enumerate(grid))


def check_index(name: str, self: Tensor, dim: int, index: Tensor, others: str = "") -> Array:
    """The index array; raises when its dtype, its dims or one of its entries do not fit."""
    if index.dtype not in (int64, int32) and index._array.size:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    array = index._array
    if max(array.ndim, 1) != max(self._array.ndim, 1) and array.size:
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {others or 'self'} tensor")
    return array


def _stop(index: Array, dim: int, size: int, tensors: Sequence[Tensor]) -> tuple[Array, RuntimeError] | None:
    """What is visited before the first entry outside the dim, and how that one is refused; None when all are inside.

    ``tensors`` are those that the kernel walks, the one that it writes first.
    """
    strides = [tuple(s // a.itemsize for s in a.strides) for a in (at_least_1d(t._array) for t in tensors)]
    if (found := first_wrong(index, 0, size, lambda: walk_along(index.shape, dim, strides))) is None:
        return None
    before, entry = found
    return before, RuntimeError(f"index {entry} is out of bounds for dimension {dim} with size {size}")


def _gather(self: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> Tensor:
    dim = wrap_dim(dim, self._array.ndim)
    where_ = check_index("gather", self, dim, index, "input")
    array = at_least_1d(resolved(self))
    flat = at_least_1d(where_)
    if not flat.size:
        return wrapped(np.empty(where_.shape, array.dtype), self.dtype, self)
    for d, n in enumerate(flat.shape):
        if d != dim and n > array.shape[d]:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(where_.shape)} to be no larger than self "
                f"{list(self._array.shape)} apart from dimension {dim}"
            )
    if (stop := _stop(flat, dim, array.shape[dim], (self, index))) is not None:
        raise stop[1]
    return wrapped(array[places(flat, dim)].reshape(where_.shape), self.dtype, self)


def _gather_grad(grad: Tensor, self: Tensor, dim: int, index: Tensor) -> Tensor:
    return grad.new_zeros(self.shape).scatter_add_(dim, index, grad)  # type: ignore[no-any-return]


gather = define(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    doc="Reads the elements that index names along a dim.",
    run=_gather,
    out=Out(apart=True, dtype_first=("Dimension",)),
    grads={"self": lambda grad, self, dim, index, sparse_grad: _gather_grad(grad, self, dim, index)},
)


# ---- scatter -----------------------------------------------------------------------------------------------------


def _check_scatter(
    name: str, self: Tensor, dim: int, index: Tensor, src: Tensor | None, known: Callable[[], None] | None = None
) -> tuple[int, Array]:
    """Check the arguments, and by ``known`` the way of reducing where PyTorch does: before the range of the indices."""
    dim = wrap_dim(dim, self._array.ndim)
    if src is not None and src.dtype is not self.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    where_ = check_index(name, self, dim, index)
    if not where_.size:
        if known is not None:
            known()
        return dim, where_
    if src is not None and max(where_.ndim, 1) != max(src._array.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    _check_sizes(self, dim, where_, src)
    if known is not None:
        known()
    return dim, at_least_1d(where_)


def _check_sizes(self: Tensor, dim: int, index: Array, src: Tensor | None) -> None:
    own, given = at_least_1d(self._array).shape, at_least_1d(index).shape
    bad = any(d != dim and n > own[d] for d, n in enumerate(given))
    if src is not None:
        bad = bad or any(n > s for n, s in zip(given, at_least_1d(src._array).shape, strict=True))
    if bad:
        tail = f" and to be no larger size than src {list(src._array.shape)}" if src is not None else ""
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(self._array.shape)} apart from "
            f"dimension {dim}{tail}"
        )


def _values(src: Any, index: Array, kind: Any) -> Any:
    """What is written: the part of ``src`` that the index covers, or a number."""
    if isinstance(src, Tensor):
        return at_least_1d(resolved(src))[tuple(slice(0, n) for n in index.shape)]
    return number_of(src, kind)


def _scattered(
    name: str, self: Tensor, dim: int, index: Tensor, src: Any, write: Callable[[Array, Any, Any], None],
    known: Callable[[], None] | None = None, halted: Callable[[Array, Any, Any], None] | None = None,
) -> Tensor:  # fmt: skip
    """``write`` carried out; before a wrong index it is ``halted`` that was, where that is something else."""
    dim, where_ = _check_scatter(name, self, dim, index, src if isinstance(src, Tensor) else None, known)
    result = np.array(resolved(self), order="C")
    if not where_.size:
        return wrapped(result, self.dtype, self)
    target, place = at_least_1d(result), places(where_, dim)
    walked = (self, src, index) if isinstance(src, Tensor) else (self, index)
    stop = _stop(where_, dim, target.shape[dim], walked)
    if stop is not None and not len(stop[0]):
        raise stop[1]
    values = _values(src, where_, self.dtype)  # a number is converted when the first element is written
    if stop is None:
        write(target, place, values)
        return wrapped(result, self.dtype, self)
    write = halted or write
    if write is not _add or self.dtype.itemsize != 2 or self.dtype.category != FLOAT:  # those are added apart
        write(target, *some(place, values, where_.shape, stop[0]))
    raise halfway(stop[1], wrapped(result, self.dtype, self))


def _assign(target: Array, place: Any, values: Any) -> None:
    target[place] = values


def _add(target: Array, place: Any, values: Any) -> None:
    if target.dtype == np.bool_:
        np.logical_or.at(target, place, values)
    else:
        np.add.at(target, place, values)


def _multiply(target: Array, place: Any, values: Any) -> None:
    np.multiply.at(target, place, values)


def _check_old_reduce(reduce: str) -> None:
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")


def _scatter_reduce_old(self: Tensor, dim: int, index: Tensor, src: Any, reduce: str) -> Tensor:
    write = _add if reduce == "add" else _multiply
    return _scattered("scatter", self, dim, index, src, write, lambda: _check_old_reduce(reduce))


def _define_reducing(overload: str, kind: str) -> None:
    define(
        f"scatter.{overload}(Tensor self, int dim, Tensor index, {kind}, *, str reduce) -> Tensor",
        doc="Adds or multiplies into the elements that index names along a dim.",
        run=_scatter_reduce_old,
        out=Out(memory_first=True, apart=True),
        node="NotImplemented",
        grads={"self": lambda grad: _no_derivative()},
        inplace=True,
    )


scatter = define(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    doc="Writes src's elements where index says along a dim.",
    run=lambda self, dim, index, src: _scattered("scatter", self, dim, index, src, _assign),
    out=Out(memory_first=True, apart=True),
    node="ScatterBackward0",
    grads={
        "self": lambda grad, dim, index: grad.scatter(dim, index, 0),
        "src": lambda grad, dim, index: grad.gather(dim, index),
    },
    inplace=True,
)
_define_reducing("reduce", "Tensor src")
scatter_value = define(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    doc="Writes one value where index says along a dim.",
    run=lambda self, dim, index, value: _scattered("scatter", self, dim, index, value, _assign),
    out=Out(memory_first=True, apart=True),
    node="ScatterBackward1",
    grads={"self": lambda grad, dim, index: grad.scatter(dim, index, 0)},
    inplace=True,
)
_define_reducing("value_reduce", "Scalar value")


def _no_derivative() -> Any:
    raise RuntimeError("derivative for aten::scatter is not implemented")


scatter_add = define(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    doc="Adds src's elements to those that index names along a dim.",
    run=lambda self, dim, index, src: _scattered("scatter", self, dim, index, src, _add),
    out=Out(memory_first=True, apart=True),
    grads={
        "self": lambda grad: grad,
        "src": lambda grad, dim, index: grad.gather(dim, index),
    },
    inplace=True,
)

# ---- scatter_reduce ----------------------------------------------------------------------------------------------


def identity(reduce: str, kind: Any) -> Any:
    """The value that a reduction starts with when the old elements do not count."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if kind.dtype.kind == "b":
        return reduce == "amin"
    if kind.dtype.kind in "iu":
        limits = np.iinfo(kind.dtype)
        return limits.min if reduce == "amax" else limits.max
    return -np.inf if reduce == "amax" else np.inf


def reduce_into(target: Array, place: Any, values: Any, reduce: str, include_self: bool) -> None:
    """Reduce ``values`` into the places of ``target``."""
    if not include_self:
        target[place] = identity(reduce, target)
    if reduce in ("sum", "mean"):
        _add(target, place, values)
        if reduce == "mean":
            _divide(target, place, include_self)
    elif reduce == "prod":
        _multiply(target, place, values)
    else:
        (np.maximum if reduce == "amax" else np.minimum).at(target, place, values)


def _divide(target: Array, place: Any, include_self: bool) -> None:
    count = np.full(target.shape, 1 if include_self else 0, np.int64)
    np.add.at(count, place, 1)
    count[count == 0] = 1
    divide = np.floor_divide if target.dtype.kind in "iu" else np.true_divide
    target[...] = divide(target, count).astype(target.dtype)


def check_reduce(reduce: str) -> None:
    """Refuse an unknown way of reducing."""
    if reduce not in REDUCES:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")


def _scatter_reduce(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)

    def check() -> None:
        check_reduce(reduce)
        if not include_self and index._array.size:  # PyTorch begins by writing the neutral element at the indices
            _check_begun(self, wrap_dim(dim, self._array.ndim), index, identity(reduce, self._array))
        _check_kernel(reduce, self.dtype, bool(index._array.size))

    return _scattered(
        "scatter", self, dim, index, src,
        lambda target, place, values: reduce_into(target, place, values, reduce, include_self),
        check,
        _add if reduce in ("sum", "mean") else None,
    )  # fmt: skip


def _check_begun(self: Tensor, dim: int, index: Tensor, neutral: Any) -> None:
    """Refuse entries outside the dim; the neutral element stands at those before."""
    where_ = at_least_1d(index._array)
    result = np.array(resolved(self), order="C")
    target = at_least_1d(result)
    if (stop := _stop(where_, dim, target.shape[dim], (self, index))) is not None:
        place, _ = some(places(where_, dim), neutral, where_.shape, stop[0])
        target[place] = neutral
        raise halfway(stop[1], wrapped(result, self.dtype, self))


def _check_kernel(reduce: str, kind: dtype, written: bool) -> None:
    """Refuse what PyTorch has no kernel for; of bools a mean is divided even where nothing is ``written``."""
    check_reduce(reduce)
    mean_of_bools = kind.category == BOOL and reduce == "mean"
    if written and (mean_of_bools or kind.is_complex and reduce in ("amax", "amin")):
        raise not_implemented(f"scatter_gather_tensor_cpu_reduce_{reduce}", kind)
    if mean_of_bools:
        raise not_implemented("div_floor_cpu", kind)


def _prod_grads(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """A zero among the factors is taken out before dividing by the others."""
    nonzero = self.masked_fill(self == 0, 1)
    own = grad * nonzero.scatter_reduce(dim, index, src, "prod", include_self=include_self) / nonzero
    zero = src == 0
    zeros = self.new_zeros(self.shape).scatter_add(dim, index, zero.to(self.dtype)).gather(dim, index)
    alone = zero.logical_and(zeros == 1)
    without = self.scatter_reduce(dim, index, src.masked_fill(alone, 1), "prod", include_self=include_self)
    return own, where.call(
        alone, (grad * without).gather(dim, index), (grad * result).gather(dim, index) / src.masked_fill(zero, 1)
    )


def scatter_reduce_grads(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of both operands of ``scatter_reduce``."""
    if reduce == "sum":
        own, other = grad, grad.gather(dim, index)
    elif reduce == "prod":
        own, other = _prod_grads(grad, self, dim, index, src, include_self, result)
    elif reduce == "mean":
        count = grad.new_full(grad.shape, 1 if include_self else 0).scatter_add(dim, index, src.new_ones(src.shape))
        count = count.masked_fill(count == 0, 1)
        own, other = grad / count, grad.gather(dim, index) / count.gather(dim, index)
    else:
        kept, chosen = self == result, src == result.gather(dim, index)
        share = grad / kept.to(self.dtype).scatter_add(dim, index, chosen.to(self.dtype))
        own, other = kept * share, chosen * share.gather(dim, index)
    return own if include_self else own.scatter(dim, index, 0), other


define(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
    "-> Tensor",
    doc="Reduces src's elements into those that index names along a dim.",
    run=_scatter_reduce,
    out=Out(memory_first=True),
    node="ScatterReduceBackward0",
    grads={"self,src": scatter_reduce_grads},
    inplace=True,
)


def _take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    if indices.dtype is not int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {scalar_name(indices.dtype)}"
        )
    if dim is None:
        return self.view(-1).gather(0, indices.view(-1))  # type: ignore[no-any-return]
    a, b = self._array.ndim, indices._array.ndim
    if a != b:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{a} dimensions for input, and {b} dimensions for indices"
        )
    dim = wrap_dim(wrap_dim(dim, a), a, scalar=False)
    from stridescope.engine.layout import broadcast_shapes

    sizes = [n for d, n in enumerate(self.shape) if d != dim]
    shape = list(broadcast_shapes(sizes, [n for d, n in enumerate(indices.shape) if d != dim]))
    if a:  # negative entries count from the end here, unlike in gather
        indices = where.call(indices < 0, indices + self.shape[dim], indices)
    own, other = shape.copy(), shape.copy()
    if a:
        own.insert(dim, self.shape[dim])
        other.insert(dim, indices.shape[dim])
    return self.broadcast_to(own).gather(dim, indices.broadcast_to(other))  # type: ignore[no-any-return]


define(
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    doc="Reads by an index tensor along a dim; the other dims are broadcast.",
    composite=_take_along_dim,
)
