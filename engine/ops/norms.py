"""Norms and distances: vector_norm, norm, dist, cdist, renorm, logsumexp."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.promote import result_type
from stridescope.engine.dispatch.run import cast, resolved
from stridescope.engine.dtype import FLOAT, INTEGER, default_float, dtype, scalar_name
from stridescope.engine.layout import broadcast_shapes, wrap_dim
from stridescope.engine.ops.lookup import concatenated, op_call
from stridescope.engine.ops.reduce import added, axes, unreduced, widened, wrapped
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor

INF = math.inf


def lengths(array: Array, order: float, over: tuple[int, ...], keepdim: bool) -> Array:
    """The p-norms of real or complex numbers along some dims."""
    size = np.abs(array)
    if order == INF or order == -INF:
        reduce: Any = np.max if order > 0 else np.min
        return np.asarray(reduce(size, axis=over, keepdims=keepdim)) if size.ndim else size
    if order == 0:
        return added((size != 0).astype(size.dtype), over, keepdim)
    if order == 1:
        return added(size, over, keepdim)
    if order == 2:
        # in double precision, as a product of large float32 numbers would overflow and small ones vanish
        wide = size.astype(np.float64) if size.dtype == np.float32 else size
        return np.sqrt(added(wide * wide, over, keepdim)).astype(size.dtype)
    return np.power(added(np.power(size, size.dtype.type(order)), over, keepdim), size.dtype.type(1.0 / order))  # type: ignore[no-any-return]


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
        raise RuntimeError(f"{name}: dtype should be floating point or complex. Got {scalar_name(kind)}")
    if kind.is_complex is not own.is_complex:
        what = "complex" if own.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {what} for {what} inputs. Got {scalar_name(kind)}")
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
        return grad * (self / result).masked_fill(result == 0, 0)
    if order in (INF, -INF):
        size = self.abs()
        mask = (size == result).logical_or(size.isnan())
        count = mask.sum(axes(dim, self._array.ndim), True)
        return self.sgn() * (grad / count * mask)
    if order < 1:
        slope = self.sgn() * self.abs().pow(order - 1).masked_fill(self == 0, 0)
        return slope * grad * result.pow(1 - order)
    if order < 2:
        slope = self.sgn() * self.abs().pow(order - 1)
        return slope * (grad / result.pow(order - 1)).masked_fill(result == 0, 0)
    slope = self * self.abs().pow(order - 2)
    return slope * (grad / result.pow(order - 1)).masked_fill(result == 0, 0)


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
    from stridescope.engine.dispatch.out import written

    result = _norm(self, p, dim, keepdim, dtype)
    return result if out is None else written(out, result, "norm")


def _norm(self: Tensor, p: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    dims = (dim,) if isinstance(dim, int) else dim
    if p == "fro" and (dims is None or len(dims) <= 2):
        return vector_norm.call(self, 2, dims, keepdim, dtype)  # type: ignore[no-any-return]
    if isinstance(p, str):
        matrix = op_call("linalg_matrix_norm.str_ord")
        return matrix(self, p, (-2, -1) if dims is None else dims, keepdim, dtype)  # type: ignore[no-any-return]
    return vector_norm.call(self, 2.0 if p is None else p, dims, keepdim, dtype)  # type: ignore[no-any-return]


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
    return total if keepdim else total.reshape(tuple(n for d, n in enumerate(array.shape) if d not in over))


def _logsumexp(self: Tensor, dim: Sequence[int], keepdim: bool) -> Tensor:
    kind = default_float() if self.dtype.category <= INTEGER else self.dtype
    array = cast(resolved(self), kind)
    if not dim and not keepdim and array.ndim and array.size:
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {[1] * array.ndim}")
    total = log_sum_exp(array, axes(dim, array.ndim), keepdim, lambda a: _rounded(a, array.dtype))
    return wrapped(total, kind, self)


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
    grads={"self": _logsumexp_grad},
    samples=[((3, 4), (1,))],
)

# ---- cdist -------------------------------------------------------------------------------------------------------


def _check_cdist(x1: Tensor, x2: Tensor, p: float) -> None:
    a, b = x1._array, x2._array
    for name, tensor in (("X1", x1), ("X2", x2)):
        if tensor.dtype.category != FLOAT:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {scalar_name(tensor.dtype)}")
    for name, array in (("X1", a), ("X2", b)):
        if array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {array.ndim}D")
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: {b.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")


def _cdist_run(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    _check_cdist(x1, x2, p)
    a, b = resolved(x1), resolved(x2)
    kind = result_type(x1, x2)
    if kind.itemsize == 2 and a.size and b.size:
        raise not_implemented("cdist", kind)
    apart = cast(a, kind)[..., :, None, :] - cast(b, kind)[..., None, :, :]
    result = lengths(apart, p, (apart.ndim - 1,), False) if a.shape[-1] else np.zeros(apart.shape[:-1], kind.np)
    return wrapped(result, kind, x1)


def _cdist_grads(
    grad: Tensor, x1: Tensor, x2: Tensor, p: float, result: Tensor, needs: tuple[bool, ...]
) -> tuple[Tensor, Tensor]:
    if not result._array.size or not x1.shape[-1]:
        return x1.new_zeros(x1.shape), x2.new_zeros(x2.shape)
    apart = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    slope = norm_grad(grad, apart, p, result, (apart._array.ndim - 1,), False)
    return slope.sum(-2), -slope.sum(-3)


cdist_forward = define(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    doc="The p-norm distance of each pair of rows.",
    run=_cdist_run,
    node="CdistBackward0",
    grads={"x1,x2": _cdist_grads},
    method=False,
)


def _euclidean(x1: Tensor, x2: Tensor) -> Tensor:
    """Distances out of one matrix product: ``|a|² - 2ab + |b|²``, which loses digits where points are close."""
    square1, square2 = x1.pow(2).sum(-1, True), x2.pow(2).sum(-1, True)
    first = concatenated([x1.mul(-2), square1, square1.new_ones(square1.shape)], -1)
    second = concatenated([x2, square2.new_ones(square2.shape), square2], -1)
    return first.matmul(second.mT).clamp_min_(0).sqrt_()  # type: ignore[no-any-return]


def _euclidean_grads(grad: Tensor, x1: Tensor, x2: Tensor, result: Tensor) -> tuple[Tensor, Tensor]:
    ratio = (grad / result).masked_fill(result == 0, 0)
    return (
        x1 * ratio.sum(-1, True) - ratio.matmul(x2),
        x2 * ratio.sum(-2, False).unsqueeze(-1) - ratio.mT.matmul(x1),
    )


_euclidean_dist = define(
    "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
    doc="The Euclidean distance of each pair of rows, by a matrix product.",
    run=lambda x1, x2: _euclidean(x1.detach(), x2.detach()),
    grads={"x1,x2": _euclidean_grads},
    method=False,
)
# From this many rows on, distances are found by a matrix product unless the mode says otherwise.
MANY_ROWS = 25


def _by_product(x1: Tensor, x2: Tensor, mode: int | None) -> Tensor:
    """Euclidean distances of batches that broadcast."""
    _check_cdist(x1, x2, 2.0)
    batch = broadcast_shapes(tuple(x1.shape[:-2]), tuple(x2.shape[:-2]))
    shape = (*batch, x1.shape[-2], x2.shape[-2])
    if not math.prod(shape) or not x1.shape[-1]:
        return cdist_forward.call(x1, x2, 2.0, mode)  # type: ignore[no-any-return]
    if math.prod(batch) != 1:
        x1, x2 = (t.expand((*batch, *t.shape[-2:])).contiguous().view((-1, *t.shape[-2:])) for t in (x1, x2))
    return _euclidean_dist.call(x1, x2).view(shape)  # type: ignore[no-any-return]


MODES = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """``torch.cdist``: the p-norm distance of each pair of rows of two batches."""
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    mode = MODES[compute_mode]
    matrices = x1._array.ndim > 1 < x2._array.ndim
    many = mode == 1 or (mode is None and matrices and max(x1.shape[-2], x2.shape[-2]) > MANY_ROWS)
    if p == 2 and matrices and many:
        return _by_product(x1, x2, mode)
    return cdist_forward.call(x1, x2, p, mode)  # type: ignore[no-any-return]


FUNCTIONS: dict[str, Any] = {"norm": norm, "cdist": cdist}
METHODS: dict[str, Any] = {
    "norm": lambda self, p="fro", dim=None, keepdim=False, dtype=None: norm(self, p, dim, keepdim, dtype=dtype)
}
