"""Order: sort, argsort, topk, kthvalue, median, mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.run import laid_out, resolved
from stridescope.engine.dtype import BOOL, int64
from stridescope.engine.kernels import selection
from stridescope.engine.layout import dense_strides_like, wrap_dim
from stridescope.engine.ops.extremes import chosen_grad, comparable, nonempty_dim, shared_evenly
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, fresh

SMALL = selection.SMALL
LONGEST = 4096  # rows longer than this keep the stable order of equal elements


def ordered(array: Array, dim: int, descending: bool) -> Array:
    """The indices that sort along a dim; equal elements keep their order, NaN counts as largest."""
    array = comparable(array)
    if not descending:
        return np.argsort(array, axis=dim, kind="stable")
    back = np.argsort(np.flip(array, dim), axis=dim, kind="stable")
    return array.shape[dim] - 1 - np.flip(back, dim)  # type: ignore[no-any-return]


def _sort(self: Tensor, stable: bool | None, dim: int, descending: bool) -> tuple[Tensor, Tensor]:
    dim = wrap_dim(dim, self._array.ndim)
    if self.dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    array = resolved(self)
    if not array.ndim:
        return fresh(array.copy(), self.dtype, self.device), fresh(np.zeros((), np.int64), int64, self.device)
    where = ordered(array, dim, descending)
    strides = dense_strides_like(array.shape, self.strides)
    values = laid_out(np.take_along_axis(array, where, dim), strides)
    return fresh(values, self.dtype, self.device), fresh(laid_out(where, strides), int64, self.device)


_CHOSEN = {"self": lambda grad, dim, indices, self_sym_sizes: chosen_grad(grad, dim, indices, self_sym_sizes, True)}
_CHOSEN_KEEP = {
    "self": lambda grad, dim, indices, self_sym_sizes, keepdim: chosen_grad(grad, dim, indices, self_sym_sizes, keepdim)
}

sort_stable = define(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    doc="The elements in order along a dim, and where they stood.",
    run=_sort,
    node="SortBackward1",
    grads=_CHOSEN,
)
sort = define(
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    doc="The elements in order along a dim, and where they stood.",
    run=lambda self, dim, descending: _sort(self, False, dim, descending),
    grads=_CHOSEN,
    samples=[((3, 4),), ((3, 4), 0, True)],
)
define(
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    doc="Where the elements stand in order.",
    composite=lambda self, dim=-1, descending=False: sort.call(self, dim, descending)[1],
    samples=[((3, 4),)],
)
define(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    doc="Where the elements stand in order; equal ones keep theirs.",
    composite=lambda self, stable, dim=-1, descending=False: sort_stable.call(self, stable, dim, descending)[1],
)
define(
    "msort(Tensor self) -> Tensor",
    doc="The elements in order along the first dim.",
    composite=lambda self: sort.call(self, 0, False)[0],
    samples=[((3, 4),)],
)


def _with_ties(array: Array, where: Array, dim: int, choose: Callable[[Any], list[int]]) -> Array:
    """Replace the choice in rows that have equal elements by the one that PyTorch's algorithm comes to."""
    size = array.shape[dim]
    if not 1 < size <= LONGEST:
        return where
    rows = np.moveaxis(comparable(array), dim, -1)
    order = np.sort(rows, axis=-1)
    equal = order[..., 1:] == order[..., :-1]
    if rows.dtype.kind == "f":
        equal |= np.isnan(order[..., 1:]) & np.isnan(order[..., :-1])
    tied = equal.any(-1)
    if tied.any():
        where = np.moveaxis(where, dim, -1).copy()
        for place in zip(*np.nonzero(tied), strict=True) if tied.ndim else [()]:
            where[place] = choose(rows[place].tolist())
        where = np.moveaxis(where, -1, dim)
    return where


def _topk(self: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Tensor, Tensor]:
    array = resolved(self)
    dim = wrap_dim(dim, array.ndim)
    if not 0 <= k <= (array.shape[dim] if array.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if self.dtype.is_complex or self.dtype.category == BOOL:
        raise RuntimeError(
            " topk does not support complex dtypes on CPU"
            if self.dtype.is_complex
            else "topk does not support bool dtypes on CPU"
        )
    if not array.ndim:
        return _single(self)
    where = np.take(ordered(array, dim, largest), np.arange(k), dim)
    if k:
        where = _with_ties(array, where, dim, lambda row: selection.top(row, k, largest, sorted))
    return wrapped(np.take_along_axis(array, where, dim), self.dtype, self), wrapped(where, int64, self)


define(
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    doc="The k largest (or smallest) elements along a dim, and where they stand.",
    run=_topk,
    out=Out(apart=True),
    grads=_CHOSEN,
    samples=[((3, 4), 2)],
)


def _picked(self: Tensor, array: Array, where: Array, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The elements at ``where`` (which keeps the dim), with their indices."""
    values = np.take_along_axis(array, where, dim)
    if not keepdim:
        values, where = values.squeeze(dim), where.squeeze(dim)
    return wrapped(values, self.dtype, self), wrapped(where, int64, self)


def _single(self: Tensor) -> tuple[Tensor, Tensor]:
    return wrapped(self._array.copy(), self.dtype, self), wrapped(np.zeros((), np.int64), int64, self)


def _kthvalue(self: Tensor, k: int, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    array = resolved(self)
    dim = nonempty_dim("kthvalue", array, dim)
    size = array.shape[dim] if array.ndim else 1
    if not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    if not array.ndim:
        return _single(self)
    if self.dtype.category == BOOL or self.dtype.is_complex:
        raise not_implemented("kthvalue_cpu", self.dtype)
    where = np.take(ordered(array, dim, False), [k - 1], dim)
    where = _with_ties(array, where, dim, lambda row: [selection.kth(row, k - 1)])
    return _picked(self, array, where, dim, keepdim)


define(
    "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    doc="The k-th smallest elements along a dim, and where they stand.",
    run=_kthvalue,
    out=Out(apart=True),
    grads=_CHOSEN_KEEP,
    samples=[((3, 4), 2)],
)

# ---- medians -----------------------------------------------------------------------------------------------------


def _middle(array: Array, dim: int, skip_nan: bool) -> Array:
    """Where the lower of the two middle elements stands; NaN, if there is one, unless NaN are skipped."""
    order = ordered(array, dim, False)
    size = array.shape[dim]
    if array.dtype.kind in "iub":
        return np.take(order, [(size - 1) // 2], dim)
    nan = np.isnan(comparable(array))
    count = np.add.reduce(~nan, dim, keepdims=True)
    middle = np.maximum(count - 1, 0) // 2
    if not skip_nan:
        first_nan = np.expand_dims(np.argmax(nan, dim), dim)
        return np.where(count < size, first_nan, np.take_along_axis(order, middle, dim))
    return np.take_along_axis(order, middle, dim)


def _check_median(self: Tensor, label: str) -> None:
    if self.dtype.category == BOOL or self.dtype.is_complex:
        raise not_implemented(label, self.dtype)


def _median_all(skip_nan: bool) -> Callable[[Tensor], Tensor]:
    def run(self: Tensor) -> Tensor:
        flat = resolved(self).reshape(-1)
        if not flat.size:  # NaN, and what a cast makes of it
            with np.errstate(invalid="ignore"):
                return wrapped(np.array(np.nan).astype(self.dtype.np), self.dtype, self)
        _check_median(self, "median_cpu")
        return wrapped(flat[_middle(flat, 0, skip_nan)].reshape(()), self.dtype, self)

    return run


def _median_dim(name: str, skip_nan: bool) -> Callable[..., Any]:
    def run(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
        array = resolved(self)
        dim = nonempty_dim("median", array, dim)
        _check_median(self, "median_out")
        if not array.ndim:
            return _single(self)
        where = _middle(array, dim, skip_nan)
        return _picked(self, array, where, dim, keepdim)

    return run


for _name, _skip, _words in (("median", False, "; NaN wins"), ("nanmedian", True, " among those that are not NaN")):
    _node = f"{_name.capitalize()}Backward"
    define(
        f"{_name}(Tensor self) -> Tensor",
        doc=f"The lower of the two middle elements{_words}.",
        run=_median_all(_skip),
        node=f"{_node}0",
        grads={"self": shared_evenly},
        samples=[((3, 5),)],
    )
    define(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        doc=f"The lower of the two middle elements along a dim{_words}, and where they stand.",
        run=_median_dim(_name, _skip),
        node=f"{_node}1",
        grads=_CHOSEN_KEEP,
        samples=[((3, 4), 1)],
    )


def _mode(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    array = resolved(self)
    dim = nonempty_dim("mode", array, dim)
    if not array.ndim:
        return _single(self)
    if self.dtype.is_complex and array.size:
        raise not_implemented("mode_cpu", self.dtype)
    if not array.size:
        where = np.zeros([1 if d == dim else n for d, n in enumerate(array.shape)], np.int64)
    else:
        where = np.apply_along_axis(_most_common, dim, comparable(array))
    return _picked(self, array, where, dim, keepdim)


def _most_common(row: Array) -> Array:
    """The index of the last of the most common elements, the smallest such value where several are as common."""
    if SMALL < row.size <= LONGEST:  # beyond that length PyTorch's sort mixes equal elements up
        positions, values = list(range(row.size)), row.tolist()
        selection.sort(positions, row.size, lambda a, b: values[a] < values[b])
        order = np.array(positions)
    else:
        order = np.argsort(row, kind="stable")
    values = row[order]
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    lengths = np.diff(ends, prepend=-1)
    return order[ends[np.argmax(lengths)]].reshape(1)  # type: ignore[no-any-return]


define(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    doc="The most common elements along a dim, and where one of each stands.",
    run=_mode,
    grads=_CHOSEN_KEEP,
    samples=[((3, 4),)],
)
