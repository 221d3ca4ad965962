"""Variance and standard deviation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_dtypes import refusal
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import INTEGER, can_cast, scalar_name
from stridescope.engine.ops.reduce import axes, count_of, restored, unreduced, wrapped
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, fresh
from stridescope.engine.warn import internal, warn

FREEDOM = (
    "{}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
    "divided by output numel)."
)


def _check_dtype(name: str, self: Tensor) -> None:
    if self.dtype.category <= INTEGER:
        who = name if name.endswith("_mean") else "std and var"
        raise RuntimeError(f"{who} only support floating point and complex dtypes")


def _welford(wide: Array, mean: Array, over: tuple[int, ...]) -> Array:
    """The means as a running average finds them: an infinity is met again, as NaN, by all that come after it."""
    if not wide.size or wide.dtype.kind == "c" or np.isfinite(mean).all():
        return mean
    endless = ~np.isfinite(wide)
    last = endless[tuple(slice(-1, None) if d in over else slice(None) for d in range(wide.ndim))]
    count = np.add.reduce(endless, over, keepdims=True, dtype=np.int64)
    return np.where((count == 1) & last | (count == 0), mean, np.nan)


def _quotient(total: Any, freedom: float) -> Any:
    """A sum of squares divided by the degrees of freedom, which may be used up."""
    return total / freedom if freedom > 0 else np.where(total > 0, np.inf, np.nan)


def _moments(name: str, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> tuple[Array, Array]:
    """The variance and the mean, computed in double precision as PyTorch's Welford sums are."""
    _check_dtype(name, self)
    array = resolved(self)
    wide: Any = array.astype(np.complex128 if self.dtype.is_complex else np.float64)
    over = axes(dim, array.ndim)
    count = count_of(array.shape, over)
    mean = _welford(wide, wide.sum(over, keepdims=True) / count, over)
    offset = wide - mean
    freedom = count - (1 if correction is None else correction)
    if freedom <= 0 or not mean.size:
        for _ in range(1 + self.dtype.is_complex):  # real and imaginary parts are taken one after the other
            warn(internal(FREEDOM.format(name), "aten/src/ATen/native/ReduceOps.cpp:1861"))
    parts = (offset.real, offset.imag) if self.dtype.is_complex else (offset,)
    variance = sum(_quotient((part * part).sum(over, keepdims=keepdim), freedom) for part in parts)
    return np.asarray(variance), mean if keepdim else mean.reshape(np.shape(variance))


def _into(name: str) -> Callable[..., Tensor]:
    """What ``out=`` of the op ``name`` writes: computed in the dtype of ``out``.

    The kernel has no complex numbers: RuntimeError and NotImplementedError as PyTorch raises them. A result of one
    element goes another way, which has them.
    """

    def run(self: Tensor, dim: Any, correction: Any, keepdim: bool, out: Tensor) -> Tensor:
        _check_dtype(name, self)
        variance, _ = _moments(name, self, dim, correction, keepdim)
        if not can_cast(self.dtype.to_real(), out.dtype):
            raise refusal("", self.dtype.to_real(), out.dtype) or AssertionError("a dtype that cannot be cast fitted")
        if out.dtype.is_complex and not self.dtype.is_complex and self._array.size and variance.size != 1:
            raise not_implemented("std_cpu", out.dtype)
        if self._array.size and variance.size == 1:
            if self.dtype.itemsize == 2 and out.dtype.itemsize > 2:
                raise RuntimeError(f"std_var_all: Unsupported dtype {scalar_name(self.dtype)}")
            variance = variance if self.dtype.is_complex else variance.astype(self.dtype.np)
        spread = np.sqrt(variance) if name == "std" else variance
        if name == "std" and self.dtype.is_complex and out.dtype.is_complex:  # the root of a complex number
            spread = np.where(np.isfinite(spread), spread, spread + 1j * np.nan)
        return wrapped(spread, out.dtype, self)

    return run


def _var(self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    return _real(_moments("var", self, dim, correction, keepdim)[0], self)


def _std(self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    return _real(np.sqrt(_moments("std", self, dim, correction, keepdim)[0]), self)


def _var_mean(self: Tensor, dim: Any, correction: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    variance, mean = _moments("var_mean", self, dim, correction, keepdim)
    return _real(variance, self), wrapped(mean, self.dtype, self)


def _std_mean(self: Tensor, dim: Any, correction: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    variance, mean = _moments("std_mean", self, dim, correction, keepdim)
    return _real(np.sqrt(variance), self), wrapped(mean, self.dtype, self)


def _real(array: Array, self: Tensor) -> Tensor:
    return wrapped(np.asarray(array), self.dtype.to_real(), self)


def _listed(dim: Any) -> Sequence[int]:
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _var_grad(grad: Tensor, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    whole = dim is None or not self._array.ndim
    # An empty list of dims means all of them when the variance is computed, but not when it is differentiated.
    count = self._array.size if whole else math.prod(self._array.shape[d] for d in _listed(dim))
    freedom = count - (1 if correction is None else correction)
    if whole and freedom <= 0:  # a factor that is no function of the elements
        same = self._array == (self._array.mean() if count else 0)
        return grad * fresh(np.where(same, np.nan, np.inf).astype(grad.dtype.np), grad.dtype, grad.device)  # type: ignore[no-any-return]
    scale = 2.0 / freedom if freedom else math.inf
    if whole:
        return (scale * grad) * (self - self.mean())  # type: ignore[no-any-return]
    grad = grad if self._array.ndim == 1 else unreduced(grad, self.shape, dim, keepdim)
    return (scale * grad) * (self - self.mean(axes(dim, self._array.ndim), True))  # type: ignore[no-any-return]


def _std_grad(grad: Tensor, self: Tensor, result: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    slope = (grad / (result * 2)).masked_fill(result == 0, 0)
    return _var_grad(slope, self, dim, correction, keepdim)


def _mean_grad(grad: Tensor, self: Tensor, dim: Any, keepdim: bool) -> Tensor:
    return restored(grad, self.shape, dim, keepdim) / count_of(self.shape, dim)  # type: ignore[no-any-return]


def _pair_grad(spread: Tensor | None, average: Tensor | None) -> Tensor | None:
    if spread is None or average is None:
        return average if spread is None else spread
    result: Tensor = spread + average
    return result


def _var_mean_grad(grads: Any, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor | None:
    return _pair_grad(
        None if grads[0] is None else _var_grad(grads[0], self, dim, correction, keepdim),
        None if grads[1] is None else _mean_grad(grads[1], self, dim, keepdim),
    )


def _std_mean_grad(
    grads: Any, self: Tensor, result0: Tensor, dim: Any, correction: Any, keepdim: bool
) -> Tensor | None:
    return _pair_grad(
        None if grads[0] is None else _std_grad(grads[0], self, result0, dim, correction, keepdim),
        None if grads[1] is None else _mean_grad(grads[1], self, dim, keepdim),
    )


def _family(name: str, run: Callable[..., Any], grad: Callable[..., Any], doc: str) -> None:
    """The three public forms; two of them only translate ``unbiased`` into ``correction``."""
    out = _into(name) if name in ("std", "var") else None
    results = "(Tensor, Tensor)" if name.endswith("_mean") else "Tensor"
    method = not name.endswith("_mean")
    define(
        f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> {results}",
        doc=doc,
        composite=lambda self, dim, unbiased=True, keepdim=False: whole.call(self, dim, int(unbiased), keepdim),
        method=method,
        samples=[((3, 4), (1,))],
        out=Out(out and (lambda self, dim, unbiased, keepdim, target: out(self, dim, int(unbiased), keepdim, target))),
    )
    whole = define(
        f"{name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
        f"-> {results}",
        doc=doc,
        run=run,
        grads={"self": grad},
        method=method,
        out=Out(out),
    )
    define(
        f"{name}(Tensor self, bool unbiased=True) -> {results}",
        doc=doc,
        composite=lambda self, unbiased=True: whole.call(self, None, int(unbiased), False),
        method=method,
        samples=[((3, 4),)],
    )


_family("var", _var, _var_grad, "The variance: the average squared distance from the mean.")
_family("std", _std, _std_grad, "The standard deviation: the square root of the variance.")
_family("var_mean", _var_mean, _var_mean_grad, "The variance and the mean.")
_family("std_mean", _std_mean, _std_mean_grad, "The standard deviation and the mean.")
