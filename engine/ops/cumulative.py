"""Running results along a dim: cumsum, cumprod, cummax, logcumsumexp; differences and areas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.run import cast, into, resolved
from stridescope.engine.dtype import BOOL, FLOAT, INTEGER, cpp_name, dtype, int64
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops.arithmetic import conj
from stridescope.engine.ops.extremes import comparable
from stridescope.engine.ops.lookup import where
from stridescope.engine.ops.reduce import widened
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh


def _row_major(array: Array, kind: dtype, self: Tensor) -> Tensor:
    array = cast(array, kind) if array.dtype != kind.np else array
    return fresh(dense(array), kind, self.device)


def _running(name: str, accumulate: Callable[..., Any]) -> Callable[..., Tensor]:
    def run(self: Tensor, dim: int, dtype: dtype | None) -> Tensor:
        kind = dtype or (int64 if self.dtype.category <= INTEGER else self.dtype)
        array = cast(resolved(self), kind)
        dim = wrap_dim(dim, array.ndim)
        if not array.ndim:
            return _row_major(array.copy(), kind, self)
        if kind.category == BOOL and array.size:
            raise not_implemented(f"{name}_out_cpu", kind)
        return _row_major(accumulate(_doubled(array), dim), kind, self)

    return run


def _running_sum(array: Array, dim: int) -> Array:
    return np.asarray(
        np.add.accumulate(array, axis=dim) + array.dtype.type(0)
    )  # PyTorch begins with 0: a sum is never -0


def _running_product(array: Array, dim: int) -> Array:
    """The products so far, from 1 on, which a complex product with infinities and -0 does not leave alone."""
    if array.dtype.kind == "c":
        array = array.copy()
        np.moveaxis(array, dim, 0)[:1] *= 1
    return np.multiply.accumulate(array, axis=dim)


def _doubled(array: Array) -> Array:
    """The dtype that PyTorch's CPU kernels accumulate in: double precision for all floating ones."""
    if array.dtype.kind in "iub":
        return array
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _into_running(run: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """In place the dtype stays the tensor's own."""

    def checked(self: Tensor, dim: int, dtype: dtype | None) -> Tensor:
        if dtype is not None and dtype is not self.dtype:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {cpp_name(self.dtype)} and output tensor dtype "
                f"{cpp_name(dtype)} should match"
            )
        return run(self, dim, self.dtype)

    return into(checked)


def _alone(tensor: Tensor, dim: int) -> bool:
    """Whether no element has another one before it along the dim."""
    return tensor._array.size <= 1 or not tensor._array.ndim or tensor._array.shape[dim] == 1


def _cumsum_grad(grad: Tensor, dim: int) -> Tensor:
    if _alone(grad, dim):
        return grad
    return grad.flip(dim).cumsum(dim).flip(dim)  # type: ignore[no-any-return]


def _cumprod_grad(grad: Tensor, self: Tensor, dim: int, result: Tensor) -> Tensor:
    """Where an element is zero, the products behind it are differentiated without dividing by it."""
    if _alone(self, dim):
        return grad
    if self._array.all():
        return _cumsum_grad(conj(result) * grad, dim) / conj(self)  # type: ignore[no-any-return]
    return _cumprod_by_parts(grad, self, wrap_dim(dim, self._array.ndim))


def _cumprod_by_parts(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    from stridescope.engine.ops import FUNCTIONS

    size, parts = self.shape[dim], []
    for k in range(size):
        before = self.narrow(dim, 0, k).prod(dim, True)
        ones = self.narrow(dim, k, 1).new_ones(self.narrow(dim, k, 1).shape)
        after = FUNCTIONS["torch"]["cat"]([ones, self.narrow(dim, k + 1, size - k - 1)], dim).cumprod(dim)
        parts.append((grad.narrow(dim, k, size - k) * conj(before * after)).sum(dim, True))
    return FUNCTIONS["torch"]["cat"](parts, dim)  # type: ignore[no-any-return]


def _cumulative(name: str, accumulate: Callable[..., Any], grad: Callable[..., Any], doc: str) -> None:
    run = _running(name, accumulate)
    define(
        f"{name}(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        doc=doc,
        run=run,
        out=Out(own_dtype=True),
        grads={"self": grad},
        samples=[((3, 4), 1), ((3, 4), 0)],
    )
    define(
        f"{name}_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
        doc=f"{doc} Written in place.",
        run=_into_running(run),
        node=f"{name.capitalize()}Backward0",
        grads={"self": grad},
        function=False,
    )


_cumulative("cumsum", _running_sum, lambda grad, dim: _cumsum_grad(grad, dim), "The sums so far along a dim.")
_cumulative("cumprod", _running_product, lambda grad, self, dim, result: _cumprod_grad(
    grad.to(result.dtype), self.to(result.dtype), dim, result), "The products so far along a dim.")  # fmt: skip

# ---- the largest so far ------------------------------------------------------------------------------------------


def _cum_extreme(name: str, reach: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        array = resolved(self)
        if not array.size:
            return _row_major(array.copy(), self.dtype, self), _row_major(np.zeros(array.shape, np.int64), int64, self)
        if not array.ndim and dim not in (0, -1):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        dim = wrap_dim(dim, array.ndim)
        if not array.ndim:
            return _row_major(array.copy(), self.dtype, self), _row_major(np.zeros((), np.int64), int64, self)
        if self.dtype.is_complex:
            raise not_implemented(f"{name}_cpu", self.dtype)
        plain = comparable(array)
        if plain.dtype == np.bool_:
            plain = plain.astype(np.uint8)
        best = reach.accumulate(plain, axis=dim)  # type: ignore[attr-defined]
        positions = np.arange(array.shape[dim]).reshape([-1 if d == dim else 1 for d in range(array.ndim)])
        # the latest element that reaches the best so far; once NaN has come, each NaN is as good
        reached = (plain == best) | (np.isnan(plain) if plain.dtype.kind == "f" else False)
        where = np.maximum.accumulate(np.where(reached, positions, 0), axis=dim)
        return _row_major(np.take_along_axis(array, where, dim), self.dtype, self), _row_major(where, int64, self)

    return run


def _added_back(grad: Tensor, self: Tensor, indices: Tensor, dim: int) -> Tensor:
    if not self._array.size:
        return self
    return grad.new_zeros(self.shape).zero_().scatter_add_(dim, indices, grad)  # type: ignore[no-any-return]


for _name, _reach, _word in (("cummax", np.maximum, "largest"), ("cummin", np.minimum, "smallest")):
    define(
        f"{_name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        doc=f"The {_word} elements so far along a dim, and where they stand.",
        run=_cum_extreme(_name, _reach),
        grads={"self": lambda grad, self, indices, dim: _added_back(grad, self, indices, dim)},
        samples=[((3, 4), 1)],
    )


def _logcumsumexp(self: Tensor, dim: int) -> Tensor:
    array = resolved(self)
    dim = wrap_dim(dim, array.ndim)
    if self.dtype.category < FLOAT:
        raise not_implemented("logcumsumexp_out_cpu", self.dtype)
    if not array.ndim:
        return _row_major(array.copy(), self.dtype, self)
    wide = widened(array, self.dtype) if self.dtype.itemsize == 2 else _doubled(array)
    return _row_major(_log_sums(wide, dim), self.dtype, self)


def _log_sums(array: Array, dim: int) -> Array:
    if array.dtype.kind != "c":
        return np.asarray(np.logaddexp.accumulate(array, axis=dim) + array.dtype.type(0))  # of -0 alone PyTorch makes 0
    rows = np.moveaxis(array.copy(), dim, 0)
    total = np.full(rows.shape[1:], -np.inf, array.dtype)
    for k in range(rows.shape[0]):
        total = rows[k] = _log_add(rows[k], total)
    return np.moveaxis(rows, 0, dim)


def _log_add(a: Array, b: Array) -> Array:
    """``log(exp(a) + exp(b))`` of complex numbers; NaN takes both parts, of two without a size the second stays."""
    smaller, larger = np.where(a.real < b.real, a, b), np.where(a.real < b.real, b, a)
    alike, distance = (smaller.real == larger.real) & np.isinf(smaller.real), smaller - larger
    shares = np.exp(np.where(alike | ~np.isfinite(distance.real), 0, distance))
    total = np.log1p(np.where(np.isneginf(distance.real), 0, shares)) + larger
    total = np.where(alike, np.where(smaller.real < 0, smaller, np.log(_endless(smaller) + _endless(larger))), total)
    return np.where(np.isnan(a) | np.isnan(b), complex(np.nan, np.nan), total)


def _endless(value: Array) -> Array:
    """The exponential of a number with an infinite real part: infinite in the direction of the imaginary part."""
    result = np.empty_like(value)
    with np.errstate(invalid="ignore"):
        across, along = np.sin(value.imag), np.cos(value.imag)
        result.real = np.where(np.isfinite(value.imag), np.where(along == 0, 0, along * np.inf), np.inf)
        result.imag = np.where(across == 0, 0, across * np.inf)
    return result


def _logcumsumexp_grad(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    if not grad._array.ndim or not grad._array.size:
        return grad
    if grad.dtype.is_complex:
        sums = (grad.conj().log() - result).flip(dim).logcumsumexp(dim).flip(dim)
        return (sums + self).exp().conj()  # type: ignore[no-any-return]
    # A gradient has no logarithm where it is not positive: its positive and negative parts go apart, and where a part
    # has nothing stands the lowest number, whose exponential is 0 and whose slope is finite.
    low = -3.3e38 if grad.dtype.name == "bfloat16" else float(np.finfo(grad.dtype.np).min)
    log = grad.abs().log()
    parts = [
        ((where(mask, log, log.new_full((), low)) - result).flip(dim).logcumsumexp(dim).flip(dim) + self).exp()
        for mask in (grad > 0, grad < 0)
    ]
    return parts[0] - parts[1]  # type: ignore[no-any-return]


define(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    doc="The logarithms of the sums of exponentials so far along a dim.",
    run=_logcumsumexp,
    grads={"self": lambda grad, self, result, dim: _logcumsumexp_grad(grad, self, result, dim)},
    samples=[((3, 4), 1)],
)
