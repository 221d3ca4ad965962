"""Reductions that add up and multiply: sum, mean, prod and their friends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_dtypes import expected_dtype, refusal
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.run import FLOATS, cast, resolved
from stridescope.engine.dtype import FLOAT, INTEGER, can_cast, default_float, dtype, int64, scalar_name
from stridescope.engine.kernels.cascade import LANES, LARGEST, ROWS, cascade_sum, flat_sum
from stridescope.engine.kernels.rounded_product import rounded_product
from stridescope.engine.layout import wrap_dim, wrap_dims
from stridescope.engine.ops.arithmetic import conj, real_if
from stridescope.engine.ops.views import view
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh

# NumPy's stubs do not let ``keepdims`` be a variable.
_sum: Any = np.add.reduce
_product: Any = np.multiply.reduce
_any: Any = np.logical_or.reduce
_all: Any = np.logical_and.reduce


def axes(dims: Sequence[int] | int | None, ndim: int) -> tuple[int, ...]:
    """The dims a reduction runs over; none given means all."""
    if isinstance(dims, int):
        dims = (dims,)
    if not dims:
        return tuple(range(ndim))
    if len(dims) == 1 and ndim:
        return (wrap_dim(dims[0], ndim),)
    return wrap_dims(dims, ndim) if ndim else _scalar_axes(dims)


def _scalar_axes(dims: Sequence[int]) -> tuple[int, ...]:
    wrap_dims(dims, 0)
    return ()


def wrapped(array: Array, kind: dtype, tensor: Tensor) -> Tensor:
    """A reduction's result as a tensor of ``kind`` on the device of ``tensor``."""
    array = np.asarray(array)
    return fresh(dense(array if array.dtype is kind.np else cast(array, kind)), kind, tensor.device)


def unreduced(tensor: Tensor, sizes: Sequence[int], dims: Sequence[int] | int | None, keepdim: bool) -> Tensor:
    """A reduced tensor with dims of size 1 where the reduced ones were; one of all dims broadcasts as it is."""
    if not keepdim and sizes and (isinstance(dims, int) or dims):
        for dim in sorted(axes(dims, len(sizes))):
            tensor = tensor.unsqueeze(dim)
    return tensor


def restored(grad: Tensor, sizes: Sequence[int], dims: Sequence[int] | int | None, keepdim: bool) -> Tensor:
    """The gradient of a reduced result, stretched over the reduced dims again (``sum_backward``)."""
    result: Tensor = unreduced(grad, sizes, dims, keepdim).expand(tuple(sizes))
    return result


def count_of(sizes: Sequence[int], dims: Sequence[int] | int | None) -> int:
    """How many elements become one."""
    return math.prod(sizes[d] for d in axes(dims, len(sizes))) if sizes else 1


def added(array: Array, over: tuple[int, ...], keepdims: bool = False, kind: dtype | None = None) -> Array:
    """The sum over some dims, to the bit as PyTorch's kernel adds; ``kind`` is the dtype before widening."""
    if array.dtype.kind not in "fc":
        return np.asarray(_sum(array, over, keepdims=keepdims))
    if array.size < ROWS or not over:
        total = _sum(array, over, keepdims=keepdims)
    elif array.ndim == 1 and array.size <= LARGEST and not keepdims and array.flags.c_contiguous:
        total = flat_sum(array, LANES[array.itemsize if kind is None else kind.itemsize])
    else:
        total = cascade_sum(array, over, keepdims, LANES[array.itemsize if kind is None else kind.itemsize])
    return np.asarray(total + 0)  # PyTorch begins with 0: a sum is never -0


def widened(array: Array, kind: dtype) -> Array:
    """The array in the dtype that PyTorch accumulates in: float32 for half precisions."""
    return array.astype(np.float32) if kind.itemsize == 2 and kind.is_floating_point else array


def summed(tensor: Tensor, dims: Sequence[int] | None, keepdim: bool, kind: dtype | None) -> Tensor:
    """``sum``: integers and bools add up in int64, half precisions in float32."""
    if kind is None and tensor._plain and tensor.dtype in FLOATS:  # as almost all are
        row = tensor._array
        return fresh(dense(added(row, axes(dims, row.ndim), keepdim)), tensor.dtype)
    target = kind or (int64 if tensor.dtype.category <= INTEGER else tensor.dtype)
    array = resolved(tensor) if tensor.dtype is target else cast(resolved(tensor), target)
    if array.dtype == np.bool_:
        return wrapped(_any(array, axes(dims, array.ndim), keepdims=keepdim), target, tensor)
    return wrapped(added(widened(array, target), axes(dims, array.ndim), keepdim, target), target, tensor)


def _whole(tensor: Tensor, kind: dtype | None) -> Any:
    """The sum of all elements as a NumPy scalar, the short way: of a dense floating tensor on the CPU; else None."""
    array = tensor._array
    if kind is not None or not tensor._plain or tensor.dtype not in FLOATS or not array.flags.c_contiguous:
        return None
    if not ROWS <= array.size <= LARGEST:
        return None
    return flat_sum(array.reshape(-1), LANES[array.itemsize]) + 0  # a sum is never -0


def _sum_all(self: Tensor, dtype: dtype | None) -> Tensor:
    total = _whole(self, dtype)
    return summed(self, None, False, dtype) if total is None else fresh(np.asarray(total), self.dtype)


sum_all = define(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    doc="Adds up all elements.",
    run=_sum_all,
    out=Out(own_dtype=True),
    node="SumBackward0",
    grads={"self": lambda grad, self_sym_sizes: grad.expand(self_sym_sizes)},
    samples=[((3, 4),)],
)

sum_dim = define(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    doc="Adds up the elements along some dims.",
    run=summed,
    out=Out(own_dtype=True),
    node="SumBackward1",
    grads={"self": lambda grad, self_sym_sizes, dim, keepdim: restored(grad, self_sym_sizes, dim, keepdim)},
    samples=[((3, 4), (1,)), ((3, 4), (0,), True)],
)


def _nansum(tensor: Tensor, dims: Sequence[int] | None, keepdim: bool, kind: dtype | None) -> Tensor:
    over = axes(dims, tensor._array.ndim)
    if tensor.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if kind is not None and kind.is_complex and tensor.dtype.category == FLOAT:
        raise not_implemented("nansum_cpu", kind)
    target = kind or (int64 if tensor.dtype.category <= INTEGER else tensor.dtype)
    array = widened(cast(resolved(tensor), target), target)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(0), array)
    return wrapped(added(array, over, keepdim, target), target, tensor)


def _nansum_into(tensor: Tensor, dims: Sequence[int] | None, keepdim: bool, kind: dtype | None, out: Tensor) -> Tensor:
    """What ``nansum(out=)`` writes: added in the dtype of ``out``, for which only floats have a kernel of their own."""
    if tensor.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    whole = tensor.dtype.category <= INTEGER or (kind is not None and kind.category <= INTEGER)
    if whole:  # which is a sum
        axes(dims, tensor._array.ndim)
    if kind is not None and kind is not out.dtype:
        got = f"Got {scalar_name(out.dtype)} and {scalar_name(kind)}."
        other = RuntimeError(f"nansum: provided dtype must match dtype of result. {got}")
        raise expected_dtype(kind, out.dtype) if whole else other
    axes(dims, tensor._array.ndim)
    if not whole and out.dtype.category != FLOAT and tensor._array.size:
        raise not_implemented("nansum_cpu", out.dtype)
    return _nansum(tensor, dims, keepdim, out.dtype)


nansum = define(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    doc="Adds up the elements that are not NaN.",
    run=_nansum,
    out=Out(_nansum_into),
    grads={
        "self": lambda grad, self, dim, keepdim: (
            restored(grad.to(self.dtype), self.shape, dim, keepdim) * self.isnan().logical_not()
        )
    },
    samples=[((3, 4), (1,))],
)


def _no_average(name: str, kind: dtype, given: bool) -> RuntimeError:
    which = "Optional" if given else "Input"
    return RuntimeError(
        f"{name}(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
        f"Got: {scalar_name(kind)}"
    )


def _mean_dtype(tensor: Tensor, kind: dtype | None) -> dtype:
    """The dtype that the average is of, where ``out`` does not say so; raises RuntimeError for integers."""
    target = kind or tensor.dtype
    if target.category <= INTEGER:
        raise _no_average("mean", target, given=kind is not None)
    return target


def _average(tensor: Tensor, dims: Sequence[int] | None, keepdim: bool, target: dtype) -> Tensor:
    array = widened(cast(resolved(tensor), target), target)
    over = axes(dims, array.ndim)
    count = math.prod(array.shape[d] for d in over)
    total = added(array, over, keepdim, target)
    return wrapped(np.divide(total, total.dtype.type(count)), target, tensor)


def _mean(tensor: Tensor, dims: Sequence[int] | None, keepdim: bool, kind: dtype | None) -> Tensor:
    return _average(tensor, dims, keepdim, _mean_dtype(tensor, kind))


def _mean_into(tensor: Tensor, dims: Sequence[int] | None, keepdim: bool, kind: dtype | None, out: Tensor) -> Tensor:
    """What ``mean(out=)`` writes: the sum in the dtype of ``out``, divided there.

    Integers hold the sum, and then RuntimeError says that they cannot hold the average.
    """
    from stridescope.engine.dispatch.out import filled

    _mean_dtype(tensor, kind)
    if kind is not None and kind is not out.dtype:
        raise expected_dtype(kind, out.dtype)
    if out.dtype.category > INTEGER:
        return _average(tensor, dims, keepdim, out.dtype)
    filled(out, summed(tensor, dims, keepdim, out.dtype))
    raise refusal("", default_float(), out.dtype) or AssertionError("an integer held an average")


def _mean_of_all_into(tensor: Tensor, kind: dtype | None, out: Tensor) -> Tensor:
    if not can_cast(tensor.dtype, out.dtype):
        wide = scalar_name(out.dtype)
        raise RuntimeError(f"mean.dtype_out(): input types can't be cast to the desired output type {wide}")
    return _mean_into(tensor, None, False, kind, out)


def _mean_all(self: Tensor, dtype: dtype | None) -> Tensor:
    total = _whole(self, dtype)
    if total is None:
        return _mean(self, None, False, dtype)
    return fresh(np.asarray(total / total.dtype.type(self._array.size)), self.dtype)


mean_all = define(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    doc="The average of all elements.",
    run=_mean_all,
    out=Out(_mean_of_all_into),
    node="MeanBackward0",
    grads={"self": lambda grad, self_sym_sizes, self_sym_numel: grad.expand(self_sym_sizes) / self_sym_numel},
    samples=[((3, 4),)],
)

mean_dim = define(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    doc="The average along some dims.",
    run=_mean,
    out=Out(_mean_into),
    node="MeanBackward1",
    grads={
        "self": lambda grad, self_sym_sizes, dim, self_sym_numel, keepdim: (
            restored(grad, self_sym_sizes, dim, keepdim) / (count_of(self_sym_sizes, dim) if dim else self_sym_numel)
        )
    },
    samples=[((3, 4), (1,))],
)


def _nanmean(self: Tensor, dim: Sequence[int] | None, keepdim: bool, dtype: dtype | None) -> Tensor:
    if self.dtype.category <= INTEGER:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {scalar_name(self.dtype)}"
        )
    if dtype is not None and dtype.category <= INTEGER:
        raise _no_average("nanmean", dtype, given=True)
    factor = (self == self).logical_and(self == self) if self.dtype.is_complex else self.isnan().logical_not()
    count = sum_dim.call(factor, dim, keepdim)
    return nansum.call(self, dim, keepdim, dtype) / count  # type: ignore[no-any-return]


def _nanmean_into(self: Tensor, dim: Any, keepdim: bool, dtype: dtype | None, out: Tensor) -> Tensor:
    if self.dtype.category <= INTEGER:
        raise RuntimeError(
            "nanmean(): integral types and 'Bool' are not supported for nanmean, even for empty tensors."
        )
    if self.dtype.category == FLOAT and (dtype is None or dtype.category > INTEGER):
        _nansum_into(self, dim, keepdim, dtype, out)  # which refuses the dtypes of out that it cannot add in
    return _nanmean(self, dim, keepdim, dtype)


define(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    doc="The average of the elements that are not NaN.",
    out=Out(_nanmean_into, counts=2),
    composite=lambda self, dim=None, keepdim=False, dtype=None: _nanmean(self, dim, keepdim, dtype),
    samples=[((3, 4), (1,))],
)

# ---- products ----------------------------------------------------------------------------------------------------


def _prod(tensor: Tensor, dim: int | None, keepdim: bool, kind: dtype | None) -> Tensor:
    target = kind or (int64 if tensor.dtype.category <= INTEGER else tensor.dtype)
    array = resolved(tensor) if tensor.dtype is target else cast(resolved(tensor), target)
    over = tuple(range(array.ndim)) if dim is None else axes((dim,), array.ndim)
    if array.dtype == np.bool_:
        return wrapped(_all(array, over, keepdims=keepdim), target, tensor)
    if target.itemsize == 2 and target.is_floating_point:
        product = rounded_product(array, over)
        return wrapped(np.expand_dims(product, over) if keepdim else product, target, tensor)
    return wrapped(_product(array, over, keepdims=keepdim), target, tensor)


def _others(flat: Tensor, dim: int) -> Tensor:
    """For each element the product of all others along a dim; no division, so zeros are no trouble."""
    from stridescope.engine.ops import FUNCTIONS

    cat = FUNCTIONS["torch"]["cat"]
    size = flat.shape[dim]
    one = flat.narrow(dim, 0, 1).new_ones(flat.narrow(dim, 0, 1).shape)
    before = cat([one, flat.narrow(dim, 0, size - 1)], dim).cumprod(dim)
    after = cat([one, flat.narrow(dim, 1, size - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return before * after  # type: ignore[no-any-return]


def _prod_all_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    if not self._array.ndim:
        return grad
    if self._array.all():
        return grad * conj(result / self)  # type: ignore[no-any-return]
    return (grad * conj(_others(self.reshape(-1), 0))).view(self.shape)  # type: ignore[no-any-return]


def _prod_dim_grad(grad: Tensor, self: Tensor, result: Tensor, dim: int, keepdim: bool) -> Tensor:
    if not self._array.ndim:
        return grad
    dim = wrap_dim(dim, self._array.ndim)
    if not keepdim:
        grad, result = grad.unsqueeze(dim), result.unsqueeze(dim)
    if self._array.all():
        return grad * conj(result / self)  # type: ignore[no-any-return]
    return grad * conj(_others(self, dim))  # type: ignore[no-any-return]


prod_all = define(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    doc="Multiplies all elements.",
    run=lambda self, dtype: _prod(self, None, False, dtype),
    out=Out(own_dtype=True),
    node="ProdBackward0",
    grads={"self": lambda grad, self, result: real_if(self.dtype, _prod_all_grad(grad, self.to(grad.dtype), result))},
    samples=[((3, 4),)],
)

prod_dim = define(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    doc="Multiplies the elements along a dim.",
    run=_prod,
    out=Out(own_dtype=True),
    node="ProdBackward1",
    grads={
        "self": lambda grad, self, result, dim, keepdim: _prod_dim_grad(grad, self.to(grad.dtype), result, dim, keepdim)
    },
    samples=[((3, 4), 1)],
)


def _trace(self: Tensor) -> Tensor:
    if self.dtype.category == 0:
        raise not_implemented("trace", self.dtype)
    if self._array.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self._array.ndim}")
    kind = int64 if self.dtype.category == INTEGER else self.dtype
    diagonal = widened(resolved(self).diagonal(), self.dtype)
    return wrapped(np.add.reduce(diagonal, dtype=None if kind.itemsize == 2 else kind.np), kind, self)


def _trace_grad(grad: Tensor, sizes: Sequence[int]) -> Tensor:
    whole = grad.new_zeros(tuple(sizes))
    whole.diagonal().copy_(grad)
    return whole  # type: ignore[no-any-return]


define(
    "trace(Tensor self) -> Tensor",
    doc="The sum of a matrix's diagonal.",
    run=_trace,
    grads={"self": lambda grad, self_sym_sizes: _trace_grad(grad, self_sym_sizes)},
    samples=[((3, 4),)],
)


def _sum_to_size(self: Tensor, size: Sequence[int]) -> Tensor:
    shape = self._array.shape
    extra = len(shape) - len(size)
    leading = tuple(range(extra))
    ones = tuple(d + extra for d, n in enumerate(size) if n == 1 and shape[d + extra] != 1)
    result: Any = self
    if not size:
        return sum_all.call(self)  # type: ignore[no-any-return]
    if ones or leading:
        result = sum_dim.call(self, leading + ones, True)
    return view.call(result, tuple(size)) if leading else result  # type: ignore[no-any-return]


def _checked_sum_to_size(self: Tensor, size: Sequence[int]) -> Tensor:
    shape = self._array.shape
    fits = len(size) <= len(shape) and all(n in (1, s) for n, s in zip(reversed(size), reversed(shape), strict=False))
    if not fits:
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    return _sum_to_size(self, size)


sum_to_size = define(
    "sum_to_size(Tensor self, SymInt[] size) -> Tensor",
    doc="Adds up broadcast dims until the shape is size.",
    composite=_checked_sum_to_size,
    samples=[((3, 4), (1, 4))],
    function=False,
)
