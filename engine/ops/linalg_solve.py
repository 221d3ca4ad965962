"""Determinants, inverses and solutions of linear systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import scalar_name
from stridescope.engine.layout import broadcast_shapes
from stridescope.engine.ops.choice import where
from stridescope.engine.ops.linalg_common import (
    LinAlgError,
    check_float,
    check_matrix,
    check_precision,
    check_square,
    column_major,
    eye_like,
    first_failure,
    linalg,
    need_lapack,
)
from stridescope.engine.ops.linalg_lu import factorised, int_result, solved
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor

# ---- determinants ------------------------------------------------------------------------------------------------


def _sign_of(pivots: Array) -> Array:
    swaps = np.count_nonzero(pivots != np.arange(1, pivots.shape[-1] + 1), axis=-1)
    return np.where(swaps % 2, -1, 1)


def _det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    check_square("linalg.det", A)
    check_float("linalg.det", A, "lu_cpu")
    lu, pivots, _ = factorised(resolved(A))
    diagonal = np.diagonal(lu, axis1=-2, axis2=-1)
    result = np.multiply.reduce(diagonal, -1) * _sign_of(pivots).astype(A.dtype.np)
    return wrapped(result, A.dtype, A), column_major(lu, A.dtype, A), int_result(pivots, A)


def _cofactors(A: Tensor) -> Tensor:
    """det(A) times the inverse, conjugated and transposed; exists for singular matrices too."""
    u, s, vh = np.linalg.svd(resolved(A))
    others = np.ones_like(s)
    for i in range(s.shape[-1]):
        others[..., i] = np.prod(np.delete(s, i, -1), -1)
    turn = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return wrapped(np.conj(turn) * ((u * others[..., None, :]) @ vh), A.dtype, A)


def _det_grad(grad: Tensor, A: Tensor, result: Tensor) -> Tensor:
    if not A._array.size:
        return A.new_zeros(A.shape)  # type: ignore[no-any-return]
    if not grad_mode.enabled:
        return grad.unsqueeze(-1).unsqueeze(-1) * _cofactors(A)  # type: ignore[no-any-return]
    scale = grad * (result.conj() if result.dtype.is_complex else result)
    return solve(A.mH, scale.unsqueeze(-1).expand(A.shape[:-1]).diag_embed().mT)


_det_op = define(
    "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    doc="The determinants, with the LU factorisation they come from.",
    run=_det,
    node="LinalgDetBackward0",
    grads={"A": lambda grad, A, LU, pivots, result: _det_grad(grad, A, result)},
    differentiable_outputs=[0],
    method=False,
    function=False,
)
linalg("linalg_det(Tensor A) -> Tensor", doc="The determinants.", composite=lambda A: _det_op.call(A)[0],
       samples=[((3, 3),)])  # fmt: skip
define("det(Tensor self) -> Tensor", doc="The determinants.", composite=lambda self: _det_op.call(self)[0],
       samples=[((3, 3),)])  # fmt: skip


def _slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    check_square("linalg.slogdet", A)
    check_float("linalg.slogdet", A)
    check_precision("linalg.slogdet", A)
    lu, pivots, _ = factorised(resolved(A))
    diagonal = np.diagonal(lu, axis1=-2, axis2=-1)
    size = np.abs(diagonal)
    direction = np.where(size == 0, 0, diagonal / np.where(size == 0, 1, size))
    sign = np.multiply.reduce(direction, -1) * _sign_of(pivots)
    return (
        wrapped(sign.astype(A.dtype.np), A.dtype, A),
        wrapped(np.add.reduce(np.log(size), -1), A.dtype.to_real(), A),
        column_major(lu, A.dtype, A),
        int_result(pivots, A),
    )


def _slogdet_grad(grads: Any, A: Tensor, sign: Tensor) -> Tensor:
    gsign, glog = grads[:2]
    slope = glog
    if A.dtype.is_complex and gsign is not None:
        turn = (gsign.conj() * sign).imag * -1j
        slope = turn if glog is None else glog + turn
    if slope is None:
        return A.new_zeros(A.shape)  # type: ignore[no-any-return]
    return solve(A.mH, slope.unsqueeze(-1).unsqueeze(-1) * eye_like(A))


_slogdet_op = define(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    doc="The signs and the logarithms of the sizes of the determinants.",
    run=_slogdet,
    node="LinalgSlogdetBackward0",
    grads={"A": lambda grads, A, sign: _slogdet_grad(grads, A, sign)},
    differentiable_outputs=[0, 1],
    method=False,
    function=False,
)
linalg(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    doc="The sign and the logarithm of the size of the determinant.",
    composite=lambda A: tuple(_slogdet_op.call(A))[:2],
    samples=[((3, 3),)],
)
define(
    "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
    doc="The sign and the logarithm of the size of the determinant.",
    composite=lambda self: tuple(_slogdet_op.call(self))[:2],
)


def _logdet(self: Tensor) -> Tensor:
    check_square("logdet", self)
    check_float("logdet", self)
    check_precision("logdet", self)
    sign, size = tuple(_slogdet_op.call(self))[:2]
    if self.dtype.is_complex:
        return sign.log() + size  # type: ignore[no-any-return]
    return where.call(sign == -1.0, float("nan"), size)  # type: ignore[no-any-return]


define("logdet(Tensor self) -> Tensor", doc="The logarithm of the determinant.", composite=_logdet)

# ---- inverse and solution ----------------------------------------------------------------------------------------


def _inv_ex(A: Tensor, check_errors: bool) -> tuple[Tensor, Tensor]:
    check_square("linalg.inv", A)
    check_float("linalg.inv", A)
    check_precision("linalg.inv", A)
    array = resolved(A)
    lu, _, info = factorised(array)
    if info.any():
        if check_errors:
            _raise_singular(info)
        array = np.where((info != 0)[..., None, None], np.eye(array.shape[-1], dtype=array.dtype), array)
    inverse = np.linalg.inv(array) if array.size else array.copy()
    if info.any():
        inverse[info != 0] = np.nan
    return column_major(inverse, A.dtype, A), int_result(info, A)


def _raise_singular(info: Array) -> None:
    place, code = first_failure(info)
    raise LinAlgError(
        f"linalg.inv: {place}The diagonal element {code} is zero, the inversion could not be completed because the "
        "input matrix is singular."
    )


inv_ex = linalg(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    doc="The inverses, with LAPACK's code for each matrix.",
    run=_inv_ex,
    grads={"A": lambda grad, inverse: -(inverse.mH @ (grad @ inverse.mH))},
    differentiable_outputs=[0],
    samples=[((3, 3),)],
)
linalg("linalg_inv(Tensor A) -> Tensor", doc="The inverses.", composite=lambda A: inv_ex.call(A, True)[0],
       samples=[((3, 3),)])  # fmt: skip
define("inverse(Tensor self) -> Tensor", doc="The inverses.", composite=lambda self: inv_ex.call(self, True)[0])


def _is_vector(a: Tensor, b: Tensor) -> bool:
    """Whether B is a batch of vectors and not of matrices."""
    expected = a._array.ndim - 1
    return b._array.ndim == 1 or (b._array.ndim == expected and tuple(b.shape) == tuple(a.shape[:-1]))


def _check_solve(A: Tensor, B: Tensor, left: bool, vector: bool) -> None:
    check_float("linalg.solve", A)
    if A.dtype is not B.dtype:
        raise RuntimeError(
            "linalg.solve: Expected A and B to have the same dtype, but found A of type "
            f"{scalar_name(A.dtype)} and B of type {scalar_name(B.dtype)} instead"
        )
    check_square("linalg.solve", A)
    if not vector:
        check_matrix("linalg.solve", B, "B")
    rows, columns = (B.shape[-1], 1) if vector else B.shape[-2:]
    if A.shape[-1] != (rows if left else columns):
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {equation} ({A.shape[-2]}x{A.shape[-1]} "
            f"and {rows}x{columns})"
        )
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    need_lapack("lu_cpu", A)


def _solve_ex(A: Tensor, B: Tensor, left: bool, check_errors: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    vector = _is_vector(A, B) if A._array.ndim >= 2 else False
    _check_solve(A, B, left, vector)
    a, b = resolved(A), resolved(B)
    b = b[..., None] if vector else b
    lu, pivots, info = factorised(a)
    if check_errors and info.any():
        place, _ = first_failure(info)
        raise LinAlgError(f"torch.linalg.solve: {place}The solver failed because the input matrix is singular.")
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    safe = np.where((info != 0)[..., None, None], np.eye(a.shape[-1], dtype=a.dtype), a)
    x = solved(safe, np.broadcast_to(b, (*batch, *b.shape[-2:])), left)
    if info.any():
        x[np.broadcast_to(info != 0, batch)] = np.nan
    if vector:
        return (
            column_major(x[..., 0], A.dtype, A),
            column_major(lu, A.dtype, A),
            int_result(pivots, A),
            int_result(info, A),
        )
    result = column_major(x, A.dtype, A) if left else wrapped(x, A.dtype, A)
    return result, column_major(lu, A.dtype, A), int_result(pivots, A), int_result(info, A)


def _solve_grads(
    grad: Tensor, result: Tensor, A: Tensor, LU: Tensor, pivots: Tensor, left: bool, needs: Any
) -> tuple[Any, Any]:
    vector = _is_vector(A, result)
    gB = solve(A.mH, grad, left)
    if not needs[0]:
        return None, gB
    x, g = (result.unsqueeze(-1), gB.unsqueeze(-1)) if vector else (result, gB)
    return -(g @ x.mH) if left else -(x.mH @ g), gB


_solve_op = define(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
    "-> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
    doc="The solutions X of A X = B.",
    run=_solve_ex,
    node="LinalgSolveExBackward0",
    grads={"A,B": _solve_grads},
    differentiable_outputs=[0],
    method=False,
    function=False,
)


def solve(a: Tensor, b: Tensor, left: bool = True) -> Tensor:
    """``torch.linalg.solve``."""
    return _solve_op.call(a, b, left, True)[0]  # type: ignore[no-any-return]


def _solve_with_info(A: Tensor, B: Tensor, left: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    result, _, _, info = _solve_op.call(A, B, left, check_errors)
    return result, info


linalg(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    doc="The solutions X of A X = B, with LAPACK's code for each matrix.",
    composite=_solve_with_info,
)
linalg(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    doc="The solutions X of A X = B, or of X A = B.",
    composite=lambda A, B, left=True: solve(A, B, left),
    samples=[((3, 3), (3,)), ((3, 3), (3, 2))],
)
