"""Triangular systems and Cholesky factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import cast, resolved
from stridescope.engine.dtype import scalar_name
from stridescope.engine.layout import broadcast_shapes
from stridescope.engine.ops.linalg_common import (
    LinAlgError,
    check_float,
    check_matrix,
    check_square,
    column_major,
    each,
    first_failure,
    linalg,
    need_lapack,
    stacked,
)
from stridescope.engine.ops.linalg_lu import int_result
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import internal, warn_once

# ---- triangular systems ------------------------------------------------------------------------------------------


def back_substituted(a: Array, b: Array, upper: bool, left: bool, unit: bool) -> Array:
    """The solutions of a triangular system; only the named triangle of ``a`` is read."""
    from scipy.linalg import solve_triangular as substitute

    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
    if not a.size or not b.size:
        return np.zeros(b.shape, b.dtype)
    if not left:
        turned = back_substituted(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not upper, True, unit)
        return np.swapaxes(turned, -1, -2)

    def one(matrix: Array, rhs: Array) -> tuple[Array]:
        if not unit and not np.all(np.diagonal(matrix)):
            return (_through_zero(matrix, rhs, upper),)
        return (substitute(matrix, rhs, lower=not upper, unit_diagonal=unit, check_finite=False),)

    return stacked(each(one, a, b, outputs=1)[0], batch, b.shape[-2:], b.dtype)


def _through_zero(matrix: Array, rhs: Array, upper: bool) -> Array:
    """Substitution that divides by zero where the diagonal is zero, as BLAS does."""
    x = rhs.copy()
    rows = range(matrix.shape[0] - 1, -1, -1) if upper else range(matrix.shape[0])
    for i in rows:
        others = slice(i + 1, None) if upper else slice(None, i)
        x[i] = (x[i] - matrix[i, others] @ x[others]) / matrix[i, i]
    return x


def _solve_triangular(self: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool) -> Tensor:
    check_square("linalg.solve_triangular", self)
    check_matrix("linalg.solve_triangular", B, "B")
    (n, _), (rows, columns) = self.shape[-2:], B.shape[-2:]
    if n != (rows if left else columns):
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.solve_triangular: Incompatible shapes of A and B for the equation {equation} ({n}x{n} and "
            f"{rows}x{columns})"
        )
    need_lapack("triangular_solve_cpu", self, empty=True)
    right = cast(resolved(B), self.dtype)  # PyTorch solves where it has copied B to, in the dtype of A
    x = back_substituted(resolved(self), right, upper, left, unitriangular)
    return column_major(x, self.dtype, B)


def _solve_triangular_grads(
    grad: Tensor, self: Tensor, result: Tensor, upper: bool, left: bool, unitriangular: bool, needs: Any
) -> tuple[Any, Any]:
    gB = solve_triangular.call(self.mH, grad, not upper, left, unitriangular)
    if not needs[0]:
        return None, gB
    gA = -(gB @ result.mH) if left else -(result.mH @ gB)
    shift = 1 if unitriangular else 0
    return gA.triu(shift) if upper else gA.tril(-shift), gB


solve_triangular = linalg(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    doc="The solutions of a triangular system.",
    run=_solve_triangular,
    grads={"self,B": _solve_triangular_grads},
)


def _triangular_solve(
    self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    warn_once(
        internal(
            "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a "
            "future PyTorch release.\ntorch.linalg.solve_triangular has its arguments reversed and does not return a "
            "copy of one of the inputs.\nX = torch.triangular_solve(B, A).solution\nshould be replaced with\nX = "
            "torch.linalg.solve_triangular(A, B).",
            "aten/src/ATen/native/BatchLinearAlgebra.cpp:2273",
        )
    )
    for name, tensor in (("b", self), ("A", A)):
        if tensor._array.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has "
                f"{tensor._array.ndim} dimensions instead"
            )
    _check_old_system("triangular_solve", self, A)
    need_lapack("triangular_solve_cpu", self, empty=True)
    return _triangular_run(self, A, upper, transpose, unitriangular)


def _check_old_system(name: str, b: Tensor, A: Tensor) -> None:
    """Refuse a matrix and a right hand side that do not fit, as the older solvers do."""
    if b.dtype is not A.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {scalar_name(b.dtype)} and A of type "
            f"{scalar_name(A.dtype)} instead."
        )
    rows, columns = A.shape[-2:]
    if rows != columns:
        raise RuntimeError(f"A must be batches of square matrices, but they are {rows} by {columns} matrices")
    if rows != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {rows} by {rows} but each b matrix is "
            f"{b.shape[-2]} by {b.shape[-1]}"
        )


def _triangular_run(
    self: Tensor, A: Tensor, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Tensor, Tensor]:
    batch = broadcast_shapes(self.shape[:-2], A.shape[:-2])
    copy = np.broadcast_to(resolved(A), (*batch, *A.shape[-2:]))
    a = np.swapaxes(resolved(A), -1, -2) if transpose else resolved(A)
    x = back_substituted(a, resolved(self), upper != transpose, True, unitriangular)
    return column_major(x, self.dtype, self), column_major(copy, self.dtype, self)


def _triangular_run_grads(
    grads: Any, A: Tensor, solution: Tensor, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Any, Any]:
    grad, copied = grads[:2]
    if grad is None:
        return None, copied
    result = solution
    turned = (A.conj() if A.dtype.is_complex else A) if transpose else A.mH
    gB = solve_triangular.call(turned, grad, upper if transpose else not upper, True, unitriangular)
    gA = -((result.conj() if A.dtype.is_complex else result) @ gB.mT) if transpose else -(gB @ result.mH)
    shift = 1 if unitriangular else 0
    cut = gA.triu(shift) if upper else gA.tril(-shift)
    return gB, cut if copied is None else cut + copied


define(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) "
    "-> (Tensor solution, Tensor cloned_coefficient)",
    doc="The solutions of a triangular system, and a copy of its matrix.",
    run=_triangular_solve,
    grads={"self,A": _triangular_run_grads},
)

# ---- Cholesky ----------------------------------------------------------------------------------------------------


def _factors(array: Array, upper: bool) -> tuple[Array, Array]:
    """The Cholesky factors and LAPACK's codes."""
    from scipy.linalg import get_lapack_funcs

    (potrf,) = get_lapack_funcs(("potrf",), dtype=array.dtype)
    batch, shape = array.shape[:-2], array.shape[-2:]
    if not shape[0]:
        return array.copy(), np.zeros(batch, np.int32)
    factors, info = each(lambda a: potrf(a, lower=not upper, clean=True), array, outputs=2)
    return stacked(factors, batch, shape, array.dtype), stacked(info, batch, (), np.int32)


def check_positive(name: str, info: Array) -> None:
    """Refuse matrices that are not positive-definite."""
    if info.any():
        where, code = first_failure(info)
        raise LinAlgError(
            f"{name}: {where}The factorization could not be completed because the input is not positive-definite (the "
            f"leading minor of order {code} is not positive-definite)."
        )


def _cholesky_ex(self: Tensor, upper: bool, check_errors: bool) -> tuple[Tensor, Tensor]:
    check_square("linalg.cholesky", self)
    check_float("linalg.cholesky", self, "cholesky_cpu")
    factors, info = _factors(resolved(self), upper)
    if check_errors:
        check_positive("linalg.cholesky", info)
    return column_major(factors, self.dtype, self), int_result(info, self)


def _cholesky_grad(grad: Tensor, upper: bool, L: Tensor) -> Tensor:
    lower, slope = (L.mH, grad.mH) if upper else (L, grad)
    outer = (lower.mH @ slope).tril()
    middle = 0.5 * (outer + outer.tril(-1).mH)
    half = solve_triangular.call(lower.mH, middle, True, True, False)
    return solve_triangular.call(lower, half, False, False, False)  # type: ignore[no-any-return]


cholesky_ex = linalg(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    doc="The Cholesky factors, with LAPACK's code for each matrix.",
    run=_cholesky_ex,
    grads={"self": lambda grad, upper, L: _cholesky_grad(grad, upper, L)},
    differentiable_outputs=[0],
)
linalg(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
    doc="The triangular factor L of a positive-definite matrix L L^H.",
    composite=lambda self, upper=False: cholesky_ex.call(self, upper, True)[0],
)


def _old_cholesky(self: Tensor, upper: bool) -> Tensor:
    warn_once(
        internal(
            "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
            "release.\nL = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\nU = "
            "torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\nThis transform "
            "will produce equivalent results for all valid (symmetric positive definite) inputs.",
            "aten/src/ATen/native/BatchLinearAlgebra.cpp:1765",
        )
    )
    if not self._array.size:
        return wrapped(resolved(self).copy(), self.dtype, self)
    check_square("cholesky", self)
    need_lapack("cholesky_cpu", self)
    factors, info = _factors(resolved(self), upper)
    check_positive("cholesky", info)
    return column_major(factors, self.dtype, self)


define(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    doc="The triangular factor of a positive-definite matrix.",
    run=_old_cholesky,
    grads={"self": lambda grad, upper, result: _cholesky_grad(grad, upper, result)},
)


def _cholesky_solve(self: Tensor, input2: Tensor, upper: bool) -> Tensor:
    if self._array.ndim < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {self._array.ndim} dimensions instead")
    if input2._array.ndim < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {input2._array.ndim} dimensions instead")
    _check_old_system("cholesky_solve", self, input2)
    need_lapack("cholesky_solve_cpu", self, empty=True)
    a, b = resolved(input2), resolved(self)
    turned = np.conj(np.swapaxes(a, -1, -2))
    first, second = (turned, a) if upper else (a, turned)
    half = back_substituted(first, b, False, True, False)
    return column_major(back_substituted(second, half, True, True, False), self.dtype, self)


def _cholesky_solve_grads(grad: Tensor, input2: Tensor, result: Tensor, upper: bool, needs: Any) -> tuple[Any, Any]:
    gB = cholesky_solve.call(grad, input2, upper)
    if not needs[1]:
        return gB, None
    both = gB @ result.mH
    both = both + both.mH
    return gB, -(input2 @ both) if upper else -(both @ input2)


cholesky_solve = define(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    doc="The solutions of A X = self, from the Cholesky factor of A.",
    run=_cholesky_solve,
    grads={"self,input2": _cholesky_solve_grads},
)


def _cholesky_inverse(self: Tensor, upper: bool) -> Tensor:
    check_square("cholesky_inverse", self)
    need_lapack("cholesky_inverse_out_cpu", self, empty=True)
    factor = resolved(self)
    factor = np.triu(factor) if upper else np.tril(factor)
    turned = np.conj(np.swapaxes(factor, -1, -2))
    inverse = np.linalg.inv(turned @ factor if upper else factor @ turned) if factor.size else factor.copy()
    return column_major(inverse, self.dtype, self)


def _cholesky_inverse_grad(grad: Tensor, self: Tensor, result: Tensor, upper: bool) -> Tensor:
    both = grad + grad.mH
    slope = result @ (both @ result)
    return -(self @ slope) if upper else -(slope @ self)  # type: ignore[no-any-return]


define(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    doc="The inverse of a matrix, from its Cholesky factor.",
    run=_cholesky_inverse,
    grads={"self": _cholesky_inverse_grad},
)
