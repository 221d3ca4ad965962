"""LU factorisations and what rests on them: det, slogdet, inv, solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.return_types import return_type
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import int32, scalar_name
from stridescope.engine.layout import broadcast_shapes
from stridescope.engine.ops.linalg_common import (
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
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, fresh
from stridescope.engine.warn import internal, warn_once

# ---- the factorisation -------------------------------------------------------------------------------------------


def factorised(array: Array) -> tuple[Array, Array, Array]:
    """LU, pivots (from 1, as LAPACK counts) and info of each matrix."""
    from scipy.linalg import get_lapack_funcs

    batch, (m, n) = array.shape[:-2], array.shape[-2:]
    if not array.size:  # of any dtype
        return array.copy(), np.ones((*batch, min(m, n)), np.int32), np.zeros(batch, np.int32)
    (getrf,) = get_lapack_funcs(("getrf",), dtype=array.dtype)

    def one(matrix: Array) -> tuple[Any, Any, int]:
        lu, pivots, info = getrf(matrix)
        return lu, pivots + 1, max(int(info), 0)

    lu, pivots, info = each(one, array, outputs=3)
    return (
        stacked(lu, batch, (m, n), array.dtype),
        stacked(pivots, batch, (min(m, n),), np.int32),
        stacked(info, batch, (), np.int32),
    )


def unpacked(lu: Array) -> tuple[Array, Array]:
    """The factors L (with its ones) and U out of one packed matrix."""
    m, n = lu.shape[-2:]
    k = min(m, n)
    return np.tril(lu[..., :k], -1) + np.eye(m, k, dtype=lu.dtype), np.triu(lu[..., :k, :])


def permutation(pivots: Array, rows: int) -> Array:
    """Which row each pivoted row came from."""
    order = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    for place in np.ndindex(*pivots.shape[:-1]):
        own = order[place]
        for i, pivot in enumerate(pivots[place]):
            own[i], own[pivot - 1] = own[pivot - 1], own[i]
    return order


def _matrix_of(order: Array, kind: Any) -> Array:
    """The permutation matrix P of A = P L U."""
    return (order[..., None, :] == np.arange(order.shape[-1])[:, None]).astype(kind)  # type: ignore[no-any-return]


def int_result(array: Array, like: Tensor) -> Tensor:
    """Pivots or LAPACK's codes as an int32 tensor."""
    return fresh(np.ascontiguousarray(array).astype(np.int32).reshape(array.shape), int32, like.device)


def _lu_factor_ex(A: Tensor, pivot: bool, check_errors: bool) -> tuple[Tensor, Tensor, Tensor]:
    if A._array.ndim < 2:
        raise RuntimeError(
            f"torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead"
        )
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    need_lapack("lu_cpu", A)
    lu, pivots, info = factorised(resolved(A))
    if check_errors and info.any():
        where, code = first_failure(info)
        raise RuntimeError(
            f"torch.linalg.lu_factor: {where}U[{code},{code}] is zero and using it on lu_solve would result in a "
            "division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)"
        )
    return column_major(lu, A.dtype, A), int_result(pivots, A), int_result(info, A)


def _solve_upper(a: Tensor, b: Tensor, left: bool = True, unit: bool = False) -> Tensor:
    return triangular(a, b, upper=True, left=left, unitriangular=unit)


def triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """``torch.linalg.solve_triangular``."""
    from stridescope.engine.ops.linalg_triangular import solve_triangular

    return solve_triangular.call(a, b, upper, left, unitriangular)  # type: ignore[no-any-return]


def lu_grad(gL: Tensor | None, gU: Tensor | None, P: Tensor, L: Tensor, U: Tensor) -> Tensor:
    """The gradient of A = P L U, for square, wide and tall matrices."""
    m, n = L.shape[-2], U.shape[-1]
    k = min(m, n)
    gL = L.new_zeros(L.shape) if gL is None else gL
    gU = U.new_zeros(U.shape) if gU is None else gU
    L1, U1, gL1, gU1 = L.narrow(-2, 0, k), U.narrow(-1, 0, k), gL.narrow(-2, 0, k), gU.narrow(-1, 0, k)
    lower, upper = L1.mH @ gL1, gU1 @ U1.mH
    parts: list[Tensor] = []
    if m < n:
        gU2, U2 = gU.narrow(-1, k, n - k), U.narrow(-1, k, n - k)
        lower = lower - gU2 @ U2.mH
        parts.append(_solve_upper(L1.mH, gU2, unit=True))
    elif m > n:
        gL2, L2 = gL.narrow(-2, k, m - k), L.narrow(-2, k, m - k)
        upper = upper - L2.mH @ gL2
        parts.append(triangular(U1.mH, gL2, upper=False, left=False))
    middle = lower.tril(-1) + upper.triu()
    square = triangular(U1.mH, _solve_upper(L1.mH, middle, unit=True), upper=False, left=False)
    from stridescope.engine.ops.lookup import concatenated

    whole = concatenated([square, *parts], -1 if m < n else -2) if parts else square
    return P @ whole  # type: ignore[no-any-return]


def _lu_factor_grad(grad: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    P, L, U = _unpack(LU, pivots, True, True)
    m, n = LU.shape[-2:]
    k = min(m, n)
    return lu_grad(grad.narrow(-1, 0, k).tril(-1), grad.narrow(-2, 0, k).triu(), P, L, U)


lu_factor_ex = linalg(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) "
    "-> (Tensor LU, Tensor pivots, Tensor info)",
    doc="The LU factorisation in packed form, with LAPACK's code for each matrix.",
    run=_lu_factor_ex,
    grads={"A": lambda grad, LU, pivots: _lu_factor_grad(grad, LU, pivots)},
    samples=[((3, 3),)],
)
linalg(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    doc="The LU factorisation in packed form.",
    composite=lambda A, pivot=True: lu_factor_ex.call(A, pivot, True)[:2],
)


def _lu(A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    if A._array.ndim < 2:
        raise RuntimeError(f"linalg.lu: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    need_lapack("lu_cpu", A)
    lu, pivots, _ = factorised(resolved(A))
    lower, upper = unpacked(lu)
    matrix = _matrix_of(permutation(pivots, A.shape[-2]), A.dtype.np)
    return wrapped(matrix, A.dtype, A), wrapped(lower, A.dtype, A), wrapped(upper, A.dtype, A)


linalg(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    doc="A permutation, a lower and an upper triangle whose product is A.",
    run=_lu,
    grads={"A": lambda grads, P, L, U: lu_grad(grads[0], grads[1], P, L, U)},
    differentiable_outputs=[1, 2],
    samples=[((3, 3),)],
)


def _unpack(LU: Tensor, pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> tuple[Tensor, Tensor, Tensor]:
    return lu_unpack.call(LU, pivots, unpack_data, unpack_pivots)  # type: ignore[no-any-return]


def _lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> tuple[Tensor, ...]:
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this "
            "function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    array = resolved(LU_data)
    empty = np.empty((0,), array.dtype)
    lower, upper = unpacked(array) if unpack_data else (empty, empty)
    matrix = _matrix_of(permutation(LU_pivots._array, array.shape[-2]), array.dtype) if unpack_pivots else empty
    return tuple(wrapped(part, LU_data.dtype, LU_data) for part in (matrix, lower, upper))


def _unpack_grad(grads: Any, LU_data: Tensor) -> Tensor:
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    whole = LU_data.new_zeros(LU_data.shape)
    gL, gU = grads
    from stridescope.engine.ops.lookup import concatenated

    if gL is not None:
        part = gL.tril(-1)
        whole = whole + (concatenated([part, part.new_zeros((*part.shape[:-1], n - k))], -1) if n > k else part)
    if gU is not None:
        part = gU.triu()
        rest = part.new_zeros((*part.shape[:-2], m - k, n))
        whole = whole + (concatenated([part, rest], -2) if m > k else part)
    return whole  # type: ignore[no-any-return]


lu_unpack = define(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
    "-> (Tensor P, Tensor L, Tensor U)",
    doc="The factors out of a packed LU factorisation.",
    run=_lu_unpack,
    grads={"LU_data": lambda grads, LU_data: _unpack_grad(grads, LU_data)},
    differentiable_outputs=[1, 2],
    method=False,
)


LU_IS_OLD = (
    "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a "
    "future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\nLU, pivots = "
    "torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\n"
    "should be replaced with\nLU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """``torch.lu``, the older name of ``torch.linalg.lu_factor``."""
    warn_once(internal(LU_IS_OLD, "aten/src/ATen/native/BatchLinearAlgebra.cpp:2073"))
    found = lu_factor_ex.call(A, pivot, False)
    parts = tuple(found) if get_infos else tuple(found)[:2]
    if out is not None:
        from stridescope.engine.dispatch.out import written

        return type(out)(written(target, part) for target, part in zip(out, parts, strict=True))
    return return_type("_lu_with_info", ("LU", "pivots", "info"))(parts) if get_infos else parts


def _lu_method(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    return tuple(lu(self, pivot, get_infos))


# ---- solving by a factorisation ----------------------------------------------------------------------------------


def solved(a: Array, b: Array, left: bool) -> Array:
    """The solutions X of ``a X = b``, or of ``X a = b``."""
    if not a.size or not b.size:
        return np.zeros(b.shape, b.dtype)
    if left:
        return np.linalg.solve(a, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def _check_system(LU: Tensor, B: Tensor, left: bool) -> None:
    if LU.dtype is not B.dtype:
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {scalar_name(LU.dtype)} "
            f"and B of type {scalar_name(B.dtype)} instead"
        )
    check_square("torch.linalg.lu_solve", LU)
    check_matrix("linalg.lu_solve", B, "B")
    (n, _), (rows, columns) = LU.shape[-2:], B.shape[-2:]
    if n != (rows if left else columns):
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.lu_solve: Incompatible shapes of A and B for the equation {equation} ({n}x{n} and "
            f"{rows}x{columns})"
        )


def _lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    check_float("torch.linalg.lu_solve", LU)
    if pivots.dtype is not int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    _check_system(LU, B, left)
    if B._array.size:
        need_lapack("linalg.lu_solve_cpu", LU)
    lower, upper = unpacked(resolved(LU))
    matrix = _matrix_of(permutation(pivots._array, LU.shape[-2]), LU.dtype.np)
    a = matrix @ lower @ upper
    if adjoint:
        a = np.conj(np.swapaxes(a, -1, -2))
    b = resolved(B)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = solved(a, np.broadcast_to(b, (*batch, *b.shape[-2:])), left)
    return column_major(x, B.dtype, B) if left else wrapped(x, B.dtype, B)


def _lu_solve_grad(grad: Tensor, LU: Tensor, pivots: Tensor, X: Tensor, left: bool, adjoint: bool) -> Tensor:
    P, L, U = _unpack(LU, pivots, True, True)
    if left != adjoint:
        outer = -((grad if left else grad.mH) @ (X.mH if left else X))
        both = triangular(U.mH, outer, upper=False)
        lower = triangular(L.mH, both @ U.mH, upper=True, unitriangular=True).tril(-1)
        return lower + both.triu()  # type: ignore[no-any-return]
    outer = -(P.mT @ ((X if left else X.mH) @ (grad.mH if left else grad)) @ P)
    both = triangular(L.mH, outer, upper=True, left=False, unitriangular=True)
    upper = triangular(U.mH, L.mH @ both, upper=False, left=False).triu()
    return both.tril(-1) + upper  # type: ignore[no-any-return]


lu_solve: Op = linalg(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    doc="The solutions of A X = B, from the LU factorisation of A.",
    run=_lu_solve,
    grads={
        "LU": lambda grad, LU, pivots, result, left, adjoint: _lu_solve_grad(grad, LU, pivots, result, left, adjoint),
        "B": lambda grad, LU, pivots, left, adjoint: lu_solve.call(LU, pivots, grad, left, not adjoint),
    },
)


def _old_lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    warn_once(
        internal(
            "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch "
            "release.\nNote that torch.linalg.lu_solve has its arguments reversed.\nX = torch.lu_solve(B, LU, pivots)\n"
            "should be replaced with\nX = torch.linalg.lu_solve(LU, pivots, B)",
            "aten/src/ATen/native/BatchLinearAlgebra.cpp:2230",
        )
    )
    return lu_solve.call(LU_data, LU_pivots, self, True, False)  # type: ignore[no-any-return]


define(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    doc="The solutions of A X = self, from the LU factorisation of A.",
    composite=_old_lu_solve,
)

FUNCTIONS: dict[str, Any] = {"lu": lu}
METHODS: dict[str, Any] = {"lu": _lu_method}
