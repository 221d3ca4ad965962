"""Norms of matrices, powers and exponentials, and the smaller functions of torch.linalg."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, INTEGER, dtype, int64, scalar_name
from stridescope.engine.layout import contiguous_format, wrap_dim, wrap_dims
from stridescope.engine.ops.linalg_common import (
    LinAlgError,
    blank,
    check_float,
    check_matrix,
    check_precision,
    check_square,
    eye_like,
    linalg,
)
from stridescope.engine.ops.linalg_eigen import singular_values
from stridescope.engine.ops.linalg_solve import inv_ex, solve
from stridescope.engine.ops.lookup import concatenated, op_call
from stridescope.engine.ops.matmul import matmul, vdot
from stridescope.engine.ops.norms import check_norm_dtype, vector_norm
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor

INF = math.inf

# ---- norms -------------------------------------------------------------------------------------------------------


def _shown(order: Any) -> str:
    return order if isinstance(order, str) else f"{order:g}"


def _check_matrix_norm(A: Tensor, order: Any, dim: Sequence[int], kind: dtype | None) -> tuple[int, ...]:
    known = order in ("fro", "nuc") if isinstance(order, str) else abs(float(order)) in (1.0, 2.0, INF)
    if not known:
        raise RuntimeError(f"linalg.matrix_norm: Order {_shown(order)} not supported.")
    check_matrix("linalg.matrix_norm", A)
    if A.dtype.category < FLOAT:
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {scalar_name(A.dtype)}"
        )
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {', '.join(map(str, dim))}")
    dims = tuple(wrap_dim(d, A._array.ndim) for d in dim)
    if dims[0] == dims[1]:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if kind is not None:
        check_norm_dtype(kind, A.dtype, "linalg.matrix_norm")
    return dims


def _order(ndim: int, dims: tuple[int, ...]) -> list[int]:
    """The order of dims with these last."""
    return [d for d in range(ndim) if d not in dims] + list(dims)


def _through_svd(A: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """The singular values of the matrices in these dims, along the last dim."""
    return singular_values(A.permute(_order(A._array.ndim, dims)))


def _back(result: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Two dims of size 1 where the matrices were, of the one that the reduction has kept."""
    if not keepdim:
        return result
    order = _order(result._array.ndim + 1, dims)
    back = [order.index(d) for d in range(len(order))]
    return result.unsqueeze(-1).permute(back)  # type: ignore[no-any-return]


def _extreme(values: Tensor, order: float, dim: int, keepdim: bool) -> Tensor:
    """The largest along a dim, 0 where there is none, or the smallest when the order is negative."""
    if order < 0:
        return op_call("amin")(values, (dim,), keepdim)  # type: ignore[no-any-return]
    if values.shape[dim]:
        return op_call("amax")(values, (dim,), keepdim)  # type: ignore[no-any-return]
    at, shape = wrap_dim(dim, values._array.ndim), list(values.shape)
    shape[at : at + 1] = [1] if keepdim else []
    return blank(values, shape)


def matrix_norm(A: Tensor, order: Any, dim: Sequence[int], keepdim: bool, kind: dtype | None) -> Tensor:
    """``torch.linalg.matrix_norm`` for a number or a word."""
    dims = _check_matrix_norm(A, order, dim, kind)
    if order == "fro":
        return vector_norm.call(A, 2, dims, keepdim, kind)  # type: ignore[no-any-return]
    A = A if kind is None else A.to(kind)
    if order in ("nuc", 2, -2):
        check_precision("linalg.matrix_norm", A)
    if order == "nuc":
        return _back(_through_svd(A, dims, keepdim).sum(-1, keepdim), dims, keepdim)
    size = abs(float(order))
    if size == 2.0:
        return _back(_extreme(_through_svd(A, dims, keepdim), order, -1, keepdim), dims, keepdim)
    first, second = dims if size == 1.0 else dims[::-1]
    if not keepdim and first < second:
        second -= 1
    sums = vector_norm.call(A, 1.0, (first,), keepdim, None)
    return _extreme(sums, order, second, keepdim)


linalg(
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    doc="The norm of matrices: by columns, rows or singular values.",
    composite=lambda self, ord, dim=(-2, -1), keepdim=False, dtype=None: matrix_norm(self, ord, dim, keepdim, dtype),
)
linalg(
    "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    doc="The Frobenius or nuclear norm of matrices.",
    composite=lambda self, ord="fro", dim=(-2, -1), keepdim=False, dtype=None: matrix_norm(
        self, ord, dim, keepdim, dtype
    ),
    samples=[((3, 4),)],
)


def _norm(self: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    ndim = self._array.ndim
    if dim is not None and len(dim) not in (1, 2) and ord is not None:
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if dim is None and ord is not None and ndim not in (1, 2) and not isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D.")
    if isinstance(ord, str):
        if dim is None and ndim > 2:
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D."
            )
        return matrix_norm(self, ord, (-2, -1) if dim is None else dim, keepdim, dtype)
    if ord is not None and ((dim is not None and len(dim) == 2) or (dim is None and ndim == 2)):
        return matrix_norm(self, ord, (0, 1) if dim is None else dim, keepdim, dtype)
    return vector_norm.call(self, 2 if ord is None else ord, dim, keepdim, dtype)  # type: ignore[no-any-return]


for _overload, _kind in (("", "Scalar? ord=None"), (".ord_str", "str ord")):
    linalg(
        f"linalg_norm{_overload}(Tensor self, {_kind}, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
        doc="A vector norm or a matrix norm, by the number of dims.",
        composite=lambda self, ord=None, dim=None, keepdim=False, dtype=None: _norm(self, ord, dim, keepdim, dtype),
    )


def _check_cond_norm(self: Tensor, p: Any) -> None:
    check_square(f"linalg.cond(ord={_shown(p)})", self)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")


def _cond(self: Tensor, p: Any = None) -> Tensor:
    if isinstance(p, str):
        _check_cond_norm(self, p)
    elif self._array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if not self._array.size:
        return blank(self, self.shape[:-2])
    if p is None or p in (2, -2):
        values = singular_values(self)
        small, large = values.narrow(-1, -1, 1), values.narrow(-1, 0, 1)
        return (small / large if p == -2 else large / small).squeeze(-1)  # type: ignore[no-any-return]
    _check_cond_norm(self, p)
    if p == "nuc":  # by its definition: the norm of an inverse that does not exist could not be taken
        values = singular_values(self)
        return values.sum(-1) * values.reciprocal().sum(-1)  # type: ignore[no-any-return]
    inverse, info = inv_ex.call(self, False)
    inverse = inverse.masked_fill((info != 0).unsqueeze(-1).unsqueeze(-1), INF)
    return matrix_norm(self, p, (-2, -1), False, None) * matrix_norm(inverse, p, (-2, -1), False, None)  # type: ignore[no-any-return]


linalg("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", doc="How much errors grow in a solution.",
       composite=_cond)  # fmt: skip
linalg("linalg_cond.p_str(Tensor self, str p) -> Tensor", doc="How much errors grow in a solution.",
       composite=_cond)  # fmt: skip


def _vecdot(x: Tensor, y: Tensor, dim: int = -1) -> Tensor:
    check_float("linalg.vecdot", x)
    if x.dtype is not y.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{scalar_name(x.dtype)} and y of type {scalar_name(y.dtype)} instead"
        )
    if x._array.ndim == 1 and y._array.ndim == 1:
        return vdot.call(x, y)  # type: ignore[no-any-return]
    return ((x.conj() if x.dtype.is_complex else x) * y).sum(dim)  # type: ignore[no-any-return]


linalg(
    "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    doc="The dot products of vectors along a dim.",
    composite=_vecdot,
)
linalg(
    "linalg_matmul(Tensor self, Tensor other) -> Tensor",
    doc="The matrix product, batched over leading dims.",
    composite=lambda self, other: matmul.call(self, other),
)

# ---- powers and exponentials -------------------------------------------------------------------------------------


def _matrix_power(self: Tensor, n: int) -> Tensor:
    check_square("linalg.matrix_power", self)
    if n == 0:
        return self.clone(memory_format=contiguous_format).copy_(eye_like(self))  # type: ignore[no-any-return]
    if n < 0:
        inverse: Tensor = inv_ex.call(self, True)[0]
        return inverse if n == -1 else _matrix_power(inverse, -n)
    if n == 1:
        return self.clone(memory_format=contiguous_format)  # type: ignore[no-any-return]
    if n == 2:
        return matmul.call(self, self)  # type: ignore[no-any-return]
    if n == 3:
        return matmul.call(matmul.call(self, self), self)  # type: ignore[no-any-return]
    square, result = None, None
    while n:
        square = self if square is None else matmul.call(square, square)
        n, odd = divmod(n, 2)
        if odd:
            result = square if result is None else matmul.call(result, square)
    return result  # type: ignore[return-value]


linalg(
    "linalg_matrix_power(Tensor self, int n) -> Tensor",
    doc="A square matrix times itself, n times.",
    composite=_matrix_power,
    samples=[((3, 3), 3)],
)
define(
    "matrix_power(Tensor self, int n) -> Tensor",
    doc="A square matrix times itself, n times.",
    composite=_matrix_power,
)


def _matrix_exp(self: Tensor) -> Tensor:
    from scipy.linalg import expm

    check_square("linalg.matrix_exp", self)
    if self.dtype.category < FLOAT:
        raise RuntimeError(
            f"linalg.matrix_exp: Expected a floating point or complex tensor as input. Got {scalar_name(self.dtype)}"
        )
    array = resolved(self)
    wide = array.astype(np.complex128 if self.dtype.is_complex else np.float64)
    norms = np.abs(wide).sum(-2).max(-1, initial=0) if array.size else np.zeros(array.shape[:-2])
    if array.shape[-1] > 1:  # what has no finite norm is in no range of degrees
        wide = np.where(np.isfinite(norms)[..., None, None], wide, np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        result = np.asarray(expm(wide) if array.size else wide).astype(array.dtype)
        endless = np.isinf(result).any((-2, -1)) & np.isfinite(norms)
    for place in np.argwhere(endless) if array.shape[-1] > 1 else ():
        result[tuple(place)] = _by_squaring(array[tuple(place)], norms[tuple(place)])
    if array.shape[-1] == 1:
        result = np.exp(array)
    else:
        result[np.isnan(norms)] = np.nan
    return wrapped(result, self.dtype, self)


def _by_squaring(matrix: Array, norm: float) -> Array:
    """An exponential that overflows, by squaring that of a fraction: infinity times 0 is NaN on the way."""
    from scipy.linalg import expm

    largest = 1.090863719290036 if matrix.dtype.itemsize // (1 + (matrix.dtype.kind == "c")) == 8 else 3.010066362817634
    times = max(0, math.ceil(math.log2(norm / largest)))
    result = np.asarray(expm(matrix.astype(complex) / 2**times)).astype(matrix.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(times):
            result = result @ result
    return result


def _matrix_exp_grad(grad: Tensor, self: Tensor) -> Tensor:
    """The upper right block of the exponential of [[A^H, G], [0, A^H]]."""
    size = self.shape[-1]
    turned = self.mH
    top, low = concatenated([turned, grad], -1), concatenated([turned.new_zeros(turned.shape), turned], -1)
    whole = matrix_exp.call(concatenated([top, low], -2))
    return whole.narrow(-2, 0, size).narrow(-1, size, size)  # type: ignore[no-any-return]


matrix_exp = linalg(
    "linalg_matrix_exp(Tensor self) -> Tensor",
    doc="The exponential of a matrix.",
    run=_matrix_exp,
    grads={"self": lambda grad, self: _matrix_exp_grad(grad, self)},
    samples=[((3, 3),)],
)
define(
    "matrix_exp(Tensor self) -> Tensor",
    doc="The exponential of a matrix.",
    composite=lambda self: matrix_exp.call(self),
)

# ---- others ------------------------------------------------------------------------------------------------------


def _vander(x: Tensor, N: int | None = None) -> Tensor:
    if x.dtype.itemsize < 4 and x.dtype.category != INTEGER:
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got " + scalar_name(x.dtype)
        )
    x = x if x._array.ndim else x.view(1)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = x.unsqueeze(-1).expand((*x.shape, count - 1))
    ones = powers.new_ones((*x.shape, 1))
    return concatenated([ones, powers.cumprod(-1)], -1)


linalg(
    "linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor",
    doc="Rows of the powers of each element.",
    composite=_vander,
)


define(
    "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
    doc="Rows of the powers of each element of a vector, the highest first unless ``increasing``.",
    composite=lambda x, N, increasing: _vander_of_vector(x, N, increasing),
    samples=[((4,),), ((4,), 3, True)],
    method=False,
)


def _vander_of_vector(x: Tensor, N: int | None, increasing: bool) -> Tensor:
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    powers = x.new_empty((x.shape[0], count), dtype=int64 if x.dtype.category <= INTEGER else x.dtype)
    if count:
        powers[:, 0] = 1
    if count > 1:
        powers[:, 1:] = x.unsqueeze(1)
        powers[:, 1:] = powers[:, 1:].cumprod(1)
    ordered: Tensor = powers if increasing else powers.flip(1)
    return ordered


def _tensorinv(self: Tensor, ind: int = 2) -> Tensor:
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    if ind > self._array.ndim:
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {self._array.ndim}")
    first, last = list(self.shape[:ind]), list(self.shape[ind:])
    rows, columns = math.prod(first), math.prod(last)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns} != {rows}"
        )
    inverse, info = inv_ex.call(self.reshape((columns, rows)), False)
    if bool((info != 0).any()):
        raise LinAlgError("Failed to invert the input tensor, because it is singular.")
    return inverse.reshape(last + first)  # type: ignore[no-any-return]


linalg("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", doc="The inverse of a tensor as a linear map.",
       composite=_tensorinv)  # fmt: skip


def _tensorsolve(self: Tensor, other: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    moved = self
    if dims is not None:
        own = wrap_dims(dims, self._array.ndim)
        moved = self.movedim(own, tuple(range(self._array.ndim - len(own), self._array.ndim)))
    shape = list(moved.shape[other._array.ndim :])
    size, left = other._array.size, math.prod(shape)
    if left != size:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                           f"prod(self.shape[:other.ndim]), but got {left} != {size}")  # fmt: skip
    return solve(moved.reshape((size, size)), other.flatten()).reshape(shape)  # type: ignore[no-any-return]


linalg(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    doc="The X with tensordot(self, X) equal to other.",
    composite=_tensorsolve,
)
