"""Norms: vector_norm, norm, dist, renorm, logsumexp."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import Out, own_dtype
from stridescope.engine.dispatch.run import cast, resolved
from stridescope.engine.dtype import FLOAT, INTEGER, default_float, dtype, scalar_name
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.reduce import added, axes, unreduced, widened, wrapped
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor

INF = math.inf


def lengths(array: Array, order: float, over: tuple[int, ...], keepdim: bool) -> Array:
    """The p-norms of real or complex numbers along some dims; of one number it is its size, whatever the order."""
    if order and all(array.shape[dim] == 1 for dim in over):
        size = np.asarray(np.abs(array))
        return size if keepdim else size.squeeze(over)
    if order == 2:
        return _euclidean(array if array.dtype.kind == "f" else np.abs(array), over, keepdim)
    size = np.abs(array)
    if order == INF or order == -INF:
        reduce: Any = np.max if order > 0 else np.min
        return np.asarray(reduce(size, axis=over, keepdims=keepdim)) if size.ndim else size
    if order == 0:
        return added((size != 0).astype(size.dtype), over, keepdim)
    if order == 1:
        return added(size, over, keepdim)
    return np.power(added(np.power(size, size.dtype.type(order)), over, keepdim), size.dtype.type(1.0 / order))  # type: ignore[no-any-return]


def _euclidean(array: Array, over: tuple[int, ...], keepdim: bool) -> Array:
    squares = array * array  # in the array's own precision: large ones overflow and small ones vanish, as PyTorch's do
    if array.dtype != np.float32:
        return np.asarray(np.sqrt(added(squares, over, keepdim)))
    total = np.asarray(_sum(squares, over, np.float64, keepdims=keepdim), np.float32)
    return np.asarray(np.sqrt(total))


_sum: Any = np.add.reduce


def _check_vector(self: Tensor, order: float, dim: Any, kind: dtype | None) -> None:
    if self.dtype.category < FLOAT:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {scalar_name(self.dtype)}"
        )
    if kind is not None:
        check_norm_dtype(kind, self.dtype, "linalg.vector_norm")
    if not self._array.size and (order < 0 or order == INF):
        over = axes(dim, self._array.ndim)
        shown = "inf" if order == INF else "-inf" if order == -INF else f"{order:g}"
        text = f"linalg.vector_norm cannot compute the {shown} norm on an"
        if not dim:
            raise RuntimeError(f"{text} empty tensor because the operation does not have an identity")
        for given, one in zip(dim, over, strict=True):
            if not self.shape[one]:
                raise RuntimeError(
                    f"linalg.vector_norm cannot compute the {shown} norm on the dimension {given}because this "
                    "dimension is empty and the operation does not have an identity"
                )


def check_norm_dtype(kind: dtype, own: dtype, name: str) -> None:
    """Refuse a ``dtype=`` that the norm cannot be computed in."""
    if kind.category < FLOAT:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {scalar_name(kind)}")
    if kind.is_complex is not own.is_complex:
        what = "complex" if own.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {what} for {what} inputs, but got {scalar_name(kind)}")
    from stridescope.engine.dtype import promote_types

    if promote_types(own, kind) is not kind:
        raise RuntimeError(
            f"{name}: the dtype of the input ({scalar_name(own)}) should be convertible without narrowing to the "
            f"specified dtype ({scalar_name(kind)})"
        )


def _vector_norm(self: Tensor, ord: Any, dim: Any, keepdim: bool, kind: dtype | None) -> Tensor:
    order = float(ord)
    _check_vector(self, order, dim, kind)
    target = kind or self.dtype
    array = widened(cast(resolved(self), target), target)
    return wrapped(lengths(array, order, axes(dim, array.ndim), keepdim), target.to_real(), self)


def norm_grad(grad: Tensor, self: Tensor, order: float, result: Tensor, dim: Any, keepdim: bool) -> Any:
    """The gradient of a p-norm (``linalg_vector_norm_backward``)."""
    grad, result = unreduced(grad, self.shape, dim, keepdim), unreduced(result, self.shape, dim, keepdim)
    if order == 0:
        return None
    if order == 1:
        return self.sgn() * grad
    if order == 2:
        return grad * (self / result).masked_fill_(result == 0, 0)
    if order in (INF, -INF):
        size = self.abs()
        mask = (size == result).logical_or(size.isnan())
        count = mask.sum(axes(dim, self._array.ndim), True)
        return self.sgn() * (grad / count * mask)
    if order < 1:
        slope = self.sgn() * self.abs().pow_(order - 1).masked_fill_(self == 0, 0)
        return slope * grad * result.pow(1 - order)
    if order < 2:
        slope = self.sgn() * self.abs().pow_(order - 1)
        return slope * (grad / result.pow(order - 1)).masked_fill_(result == 0, 0)
    slope = self * self.abs().pow_(order - 2)
    return slope * (grad / result.pow(order - 1)).masked_fill_(result == 0, 0)


vector_norm = define(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    doc="The length of vectors, by a p-norm.",
    run=_vector_norm,
    grads={
        "self": lambda grad, self, ord, result, dim, keepdim: norm_grad(
            grad, self.to(result.dtype) if not self.dtype.is_complex else self, float(ord), result, dim, keepdim
        )
    },
    samples=[((3, 4),), ((3, 4), 3.0, (1,))],
    namespace="torch.linalg",
    method=False,
)


def norm(
    self: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: dtype | None = None,
) -> Tensor:
    """``torch.norm``: a vector norm over the given dims (by default over all), or a matrix norm by name."""
    from stridescope.engine.ops import FUNCTIONS

    dims = [dim] if isinstance(dim, int) else dim
    options = {"dtype": dtype} if out is None else {"dtype": dtype, "out": out}
    linalg = FUNCTIONS["torch.linalg"]
    if p == "fro" and (dims is None or len(dims) <= 2):
        return linalg["vector_norm"](self, 2, dims, keepdim, **options)  # type: ignore[no-any-return]
    if isinstance(p, str):
        dims = list(range(self.ndim)) if dims is None else dims
        return linalg["matrix_norm"](self, p, dims, keepdim, **options)  # type: ignore[no-any-return]
    return linalg["vector_norm"](self, 2.0 if p is None else p, dims, keepdim, **options)  # type: ignore[no-any-return]


def _frobenius(self: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    return vector_norm.call(self, 2, dim or None, keepdim, None)  # type: ignore[no-any-return]


def _nuclear(self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    matrix = op_call("linalg_matrix_norm.str_ord")
    return matrix(self, "nuc", (-2, -1) if dim is None else dim, keepdim, None)  # type: ignore[no-any-return]


def _norm_except(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    if dim == -1:
        return v.norm(pow)  # type: ignore[no-any-return]
    first = v if dim == 0 else v.transpose(0, dim)
    sizes = (first.shape[0], *(1,) * (first.dim() - 1))
    lengths = first.contiguous().view(first.shape[0], -1).norm(pow, 1).view(sizes)
    return lengths if dim == 0 else lengths.transpose(0, dim)  # type: ignore[no-any-return]


define(
    "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    doc="The square root of the sum of squares.",
    composite=_frobenius,
    samples=[((3, 4), (0, 1))],
    method=False,
)
define(
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
    doc="The sum of a matrix's singular values.",
    composite=lambda self, keepdim=False: _nuclear(self, None, keepdim),
    samples=[((3, 4),)],
    method=False,
)
define(
    "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
    doc="The sum of the singular values of the matrices in two dims.",
    composite=_nuclear,
    method=False,
)
define(
    "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
    doc="The norm over all dims but one, which stay with size 1.",
    composite=_norm_except,
    samples=[((3, 4),)],
    method=False,
)


def _dist_run(self: Tensor, other: Tensor, p: Any) -> Tensor:
    apart = self.detach() - other.detach()
    if apart.dtype.category < FLOAT:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {scalar_name(apart.dtype)} instead."
        )
    array = widened(resolved(apart), apart.dtype)
    return wrapped(lengths(array, float(p), tuple(range(array.ndim)), False), apart.dtype.to_real(), self)


define(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    doc="The p-norm of the difference.",
    run=_dist_run,
    grads={
        "self": lambda grad, self, other, p, result: norm_grad(grad, self - other, float(p), result, None, False),
        "other": lambda grad, self, other, p, result: -norm_grad(grad, self - other, float(p), result, None, False),
    },
    samples=[((3, 4), (3, 4))],
)

# ---- renorm ------------------------------------------------------------------------------------------------------


def _renorm_factor(array: Array, p: float, dim: int, maxnorm: float) -> Array:
    others = tuple(d for d in range(array.ndim) if d != dim)
    size = lengths(array, p, others, True)
    return np.where(size > maxnorm, maxnorm / (size + 1e-7), 1.0).astype(size.dtype)


def _renorm(self: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    if self._array.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self._array.ndim} dimensions")
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    dim = wrap_dim(dim, self._array.ndim)
    if self.dtype.category < FLOAT:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {scalar_name(self.dtype)}"
        )
    array = widened(resolved(self), self.dtype)
    return wrapped(array * _renorm_factor(array, float(p), dim, float(maxnorm)), self.dtype, self)


def _renorm_grad(grad: Tensor, self: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    dim = wrap_dim(dim, self._array.ndim)
    others = tuple(d for d in range(self._array.ndim) if d != dim)
    size = vector_norm.call(self, p, others, True, None)
    inner = (grad.conj() * self).sum(others, True)
    if inner.dtype.is_complex:
        inner = inner.real
    through = norm_grad(inner, self, float(p), size, others, True)
    shrink = (size + 1e-7).reciprocal()
    scaled = maxnorm * shrink * (grad - shrink * through)
    return op_call("where.self")(size > maxnorm, scaled, grad)  # type: ignore[no-any-return]


define(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    doc="Shrinks the slices along a dim whose p-norm is larger than maxnorm.",
    run=_renorm,
    grads={"self": _renorm_grad},
    samples=[((3, 4), 2, 0, 1.0)],
    inplace=True,
)

# ---- logsumexp ---------------------------------------------------------------------------------------------------


def log_sum_exp(
    array: Array, over: tuple[int, ...], keepdim: bool, step: Callable[[Array], Array] = lambda a: a
) -> Array:
    """The logarithm of the sum of exponentials, the largest element taken out first; ``step`` rounds on the way."""
    if array.dtype.itemsize == 2:
        array = array.astype(np.float32)
    if not array.size:
        return np.log(added(np.exp(array), over, keepdim))
    top = np.max(array.real, axis=over, keepdims=True) if array.ndim else array.real
    top = np.where(np.isfinite(top), top, top.dtype.type(0))
    total = step(np.log(step(added(step(np.exp(step(array - top))), over, True)))) + top
    return total if keepdim else total.reshape(_without(array.shape, over))


def _logsumexp(self: Tensor, dim: Sequence[int], keepdim: bool) -> Tensor:
    kind = default_float() if self.dtype.category <= INTEGER else self.dtype
    array = cast(resolved(self), kind)
    if not dim and not keepdim and array.ndim and array.size:
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {[1] * array.ndim}")
    total = log_sum_exp(array, axes(dim, array.ndim), keepdim, lambda a: _rounded(a, array.dtype))
    return wrapped(total, kind, self)


def _logsumexp_into(self: Tensor, dim: Sequence[int], keepdim: bool, out: Tensor) -> Tensor:
    """What ``out=`` of another dtype gets: the exponentials are added up, and their logarithm taken, in its dtype."""
    kind = default_float() if self.dtype.category <= INTEGER else self.dtype
    if out.dtype is kind:
        return _logsumexp(self, dim, keepdim)
    array = cast(resolved(self), kind)
    over = axes(dim, array.ndim)
    top = np.max(array.real, axis=over, keepdims=True) if array.size else np.zeros((), array.real.dtype)
    top = np.where(np.isfinite(top), top, top.dtype.type(0))
    total = added(cast(np.exp(array - top), out.dtype), over, True)
    found = np.log(total) + cast(np.asarray(top), out.dtype)
    return wrapped(found if keepdim else found.reshape(_without(array.shape, over)), out.dtype, self)


def _without(shape: Sequence[int], over: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for d, n in enumerate(shape) if d not in over)


def _rounded(array: Array, kind: Any) -> Array:
    """A step of a half-precision computation, as far as its dtype holds it."""
    return array if array.dtype == kind else array.astype(kind).astype(array.dtype)


def _logsumexp_grad(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    grad, result = unreduced(grad, self.shape, dim, keepdim), unreduced(result, self.shape, dim, keepdim)
    weights = (self - result).exp()
    return grad * (weights.conj() if weights.dtype.is_complex else weights)  # type: ignore[no-any-return]


define(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    doc="The logarithm of the sum of exponentials, without overflow.",
    run=_logsumexp,
    out=Out(_logsumexp_into, dtype_at_once=own_dtype),
    grads={"self": _logsumexp_grad},
    samples=[((3, 4), (1,))],
)


FUNCTIONS: dict[str, Any] = {"norm": norm}


def _norm_method(self: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """``Tensor.norm``, as ``torch.norm``."""
    return norm(self, p, dim, keepdim, dtype=dtype)


_norm_method.__name__, _norm_method.__qualname__ = "norm", "Tensor.norm"  # which Python's own errors name
METHODS: dict[str, Any] = {"norm": _norm_method}
