"""QR factorisations, Householder products, and LDL factorisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import INTEGER, scalar_name
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops.linalg_common import (
    check_float,
    check_matrix,
    check_square,
    column_major,
    each,
    linalg,
    need_lapack,
    stacked,
)
from stridescope.engine.ops.linalg_lu import int_result
from stridescope.engine.ops.linalg_triangular import solve_triangular
from stridescope.engine.ops.lookup import concatenated
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.ops.valueless import need_values
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import internal, warn_once

MODES = ("reduced", "complete", "r")


def _qr(A: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    check_matrix("linalg.qr", A)
    check_float("linalg.qr", A)
    need_lapack("geqrf_cpu", A, empty=True)
    if mode not in MODES:
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    array = resolved(A)
    if mode == "r":
        upper = np.linalg.qr(array, mode="r") if array.size else _empty_r(array)
        return wrapped(np.empty((0,), array.dtype), A.dtype, A), column_major(upper, A.dtype, A)
    if not array.size:
        m, n = array.shape[-2:]
        k = m if mode == "complete" else min(m, n)
        q = np.broadcast_to(np.eye(m, k, dtype=array.dtype), (*array.shape[:-2], m, k))
        return column_major(q.copy(), A.dtype, A), column_major(
            np.zeros((*array.shape[:-2], k, n), array.dtype), A.dtype, A
        )
    q, r = np.linalg.qr(array, mode="complete" if mode == "complete" else "reduced")
    return column_major(q, A.dtype, A), column_major(r, A.dtype, A)


def _empty_r(array: Array) -> Array:
    m, n = array.shape[-2:]
    return np.zeros((*array.shape[:-2], min(m, n), n), array.dtype)


def _qr_grad(grads: Any, Q: Tensor, R: Tensor, mode: str) -> Tensor | None:
    gQ, gR = grads
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to require its derivatives."
        )
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if gQ is None and gR is None:
        return None
    gQ = Q.new_zeros(Q.shape) if gQ is None else gQ
    gR = R.new_zeros(R.shape) if gR is None else gR
    if m >= n:
        return _tall_grad(gQ, gR, Q, R)
    # A wide matrix is a square one with further columns Q R2.
    R1, R2, gR1, gR2 = R.narrow(-1, 0, m), R.narrow(-1, m, n - m), gR.narrow(-1, 0, m), gR.narrow(-1, m, n - m)
    square = _tall_grad(gQ + (Q @ R2) @ gR2.mH, gR1, Q, R1)
    return concatenated([square, Q @ gR2], -1)


def _tall_grad(gQ: Tensor, gR: Tensor, Q: Tensor, R: Tensor) -> Tensor:
    upper = (gR @ R.mH - Q.mH @ gQ).triu()
    middle = upper + upper.mH
    diagonal = middle.diagonal(0, -2, -1)
    (diagonal.real if diagonal.dtype.is_complex else diagonal).mul_(0.5)
    return solve_triangular.call(R.mH, Q @ middle + gQ, False, False, False)  # type: ignore[no-any-return]


qr = linalg(
    "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
    doc="An orthogonal and an upper triangular matrix whose product is A.",
    run=_qr,
    grads={"A": lambda grads, Q, R, mode: _qr_grad(grads, Q, R, mode)},
)


def _old_qr(self: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    warn_once(
        internal(
            "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\nThe "
            "boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\n"
            "should be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')",
            "aten/src/ATen/native/BatchLinearAlgebra.cpp:2505",
        )
    )
    return tuple(qr.call(self, "reduced" if some else "complete"))


define(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    doc="An orthogonal and an upper triangular matrix whose product is self.",
    composite=_old_qr,
)


def _geqrf(self: Tensor) -> tuple[Tensor, Tensor]:
    from scipy.linalg import get_lapack_funcs

    need_values("geqrf", self)
    check_matrix_old("torch.geqrf", self)
    need_lapack("geqrf_cpu", self, empty=True)
    array = resolved(self)
    (routine,) = get_lapack_funcs(("geqrf",), dtype=array.dtype)
    batch, (m, n) = array.shape[:-2], array.shape[-2:]
    found = each(lambda a: routine(a)[:2], array, outputs=2) if array.size else [[], []]
    packed = stacked(found[0], batch, (m, n), array.dtype)
    return column_major(packed, self.dtype, self), wrapped(
        stacked(found[1], batch, (min(m, n),), array.dtype), self.dtype, self
    )


def check_matrix_old(name: str, tensor: Tensor) -> None:
    """Refuse what has fewer than two dims, in the words of the older functions."""
    if tensor._array.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")


def _no_derivative(name: str) -> Any:
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


define(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    doc="A QR factorisation in LAPACK's packed form.",
    run=_geqrf,
    grads={"self": lambda grads: _no_derivative("geqrf")},
)

# ---- Householder products ----------------------------------------------------------------------------------------


def _reflectors(packed: Tensor, tau: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The vectors and factors of the reflections I - tau v v^H that a packed matrix stands for."""
    m = packed.shape[-2]
    found = []
    for i in range(tau.shape[-1]):
        below = packed.narrow(-1, i, 1).narrow(-2, i + 1, m - i - 1)
        one = below.new_ones((*below.shape[:-2], 1, 1))
        zeros = below.new_zeros((*below.shape[:-2], i, 1))
        found.append((concatenated([zeros, one, below], -2), tau.narrow(-1, i, 1).unsqueeze(-1)))
    return found


def _product(packed: Tensor, tau: Tensor) -> Tensor:
    """The product of the reflections, its first columns."""
    m, n = packed.shape[-2:]
    result = packed.new_ones((m,)).diag_embed().narrow(-1, 0, n).expand((*packed.shape[:-2], m, n))
    for v, factor in reversed(_reflectors(packed, tau)):
        result = result - (factor * v) @ (v.mH @ result)
    return result  # type: ignore[no-any-return]


def _check_product(input: Tensor, tau: Tensor) -> None:
    name = "torch.linalg.householder_product"
    check_matrix_old(name, input)
    m, n = input.shape[-2:]
    last = tau.shape[wrap_dim(-1, tau._array.ndim, scalar=False)]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if n < last:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if input._array.ndim - tau._array.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau._array.ndim} "
            f"and input.ndim is equal to {input._array.ndim}"
        )
    if tuple(tau.shape[:-1]) != tuple(input.shape[:-2]):
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if input.dtype is not tau.dtype:
        raise RuntimeError(
            f"torch.linalg.householder_product: tau dtype {scalar_name(tau.dtype)} does not match input dtype "
            f"{scalar_name(input.dtype)}"
        )


def _householder_product(input: Tensor, tau: Tensor) -> Tensor:
    _check_product(input, tau)
    need_lapack("orgqr_cpu", input, empty=True)
    return column_major(resolved(_product(input.detach(), tau.detach())), input.dtype, input)


def _again(function: Any, grad: Tensor, *inputs: Tensor) -> tuple[Any, ...]:
    """Gradients by running ``function`` once more with a graph and differentiating that."""
    from stridescope.engine.autograd.api import grad as differentiated
    from stridescope.engine.autograd.modes import grad_mode

    keep = grad_mode.enabled
    leaves = inputs if keep else tuple(t.detach().requires_grad_(True) for t in inputs)
    before, grad_mode.enabled = grad_mode.enabled, True
    try:
        result = function(*leaves)
        if not result._requires_grad:
            return (None,) * len(inputs)
        return tuple(differentiated(result, leaves, grad, create_graph=keep, allow_unused=True))
    finally:
        grad_mode.enabled = before


def _product_grad(grad: Tensor, input: Tensor, tau: Tensor) -> tuple[Any, ...]:
    """None for reflections that are not there."""
    return _again(_product, grad, input, tau) if input._array.size and tau._array.size else (None, None)


householder_product = linalg(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    doc="The orthogonal matrix that a packed QR factorisation stands for.",
    run=_householder_product,
    grads={"input,tau": lambda grad, input, tau: _product_grad(grad, input, tau)},
)


def _reflected(packed: Tensor, tau: Tensor, other: Tensor, left: bool, transpose: bool) -> Tensor:
    """``other`` with the reflections applied from one side."""
    steps = _reflectors(packed, tau)
    if left is not transpose:
        steps = steps[::-1]
    for v, factor in steps:
        f = factor.conj() if transpose and factor.dtype.is_complex else factor
        other = other - (f * v) @ (v.mH @ other) if left else other - (other @ (f * v)) @ v.mH
    return other


def _check_ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool) -> None:
    name = "torch.ormqr"
    check_matrix_old(name, input)
    if other._array.ndim < 2:
        raise RuntimeError(f"{name}: other must have at least 2 dimensions.")
    which = "-2" if left else "-1"
    size = other.shape[-2] if left else other.shape[-1]
    if size != input.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{which}] must be equal to input.shape[-2]")
    if tau.shape[wrap_dim(-1, tau._array.ndim, scalar=False)] != min(size, input.shape[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{which}], input.shape[-1])")
    if input._array.ndim - tau._array.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau._array.ndim} "
            f"and input.ndim is equal to {input._array.ndim}"
        )
    if input._array.ndim != other._array.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got other.ndim equal to "
            f"{other._array.ndim} and input.ndim is equal to {input._array.ndim}"
        )
    _check_ormqr_batches(input, tau, other)


def _check_ormqr_batches(input: Tensor, tau: Tensor, other: Tensor) -> None:
    batch = list(input.shape[:-2])
    for what, sizes in (("tau", list(tau.shape[:-1])), ("other", list(other.shape[:-2]))):
        if sizes != batch:
            raise RuntimeError(
                f"torch.ormqr: Expected batch dimensions of {what} to be equal to input.shape[:-2], but got {sizes}"
            )
    for what, tensor in (("tau", tau), ("other", other)):
        if tensor.dtype is not input.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {what} to have the same dtype, but input has dtype"
                f"{scalar_name(input.dtype)} and {what} has dtype {scalar_name(tensor.dtype)}"
            )


def _ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> Tensor:
    _check_ormqr(self, input2, input3, left)
    need_lapack("ormqr_cpu", self, empty=True)
    result = _reflected(self.detach(), input2.detach(), input3.detach(), left, transpose)
    return column_major(resolved(result), input3.dtype, input3)


def _ormqr_grad(grad: Tensor, packed: Tensor, tau: Tensor, other: Tensor, left: bool, transpose: bool) -> Any:
    found = _again(lambda a, b, c: _reflected(a, b, c, left, transpose), grad, packed, tau, other)
    return found if packed._array.size and tau._array.size else (None, None, found[2])


define(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    doc="Multiplies by the orthogonal matrix that a packed QR factorisation stands for.",
    run=_ormqr,
    grads={
        "self,input2,input3": lambda grad, self, input2, input3, left, transpose: _ormqr_grad(
            grad, self, input2, input3, left, transpose
        )
    },
)

# ---- LDL ---------------------------------------------------------------------------------------------------------


def _ldl_factor_ex(self: Tensor, hermitian: bool, check_errors: bool) -> tuple[Tensor, Tensor, Tensor]:
    from scipy.linalg import get_lapack_funcs

    check_square("torch.linalg.ldl_factor_ex", self)
    check_float("torch.linalg.ldl_factor_ex", self, "ldl_factor_kernel_cpu")
    array = resolved(self)
    name = "hetrf" if hermitian and self.dtype.is_complex else "sytrf"
    (routine,) = get_lapack_funcs((name,), dtype=array.dtype)
    batch, shape = array.shape[:-2], array.shape[-2:]
    found = each(lambda a: routine(np.tril(a), lower=1), array, outputs=3) if array.size else [[], [], []]
    info = stacked(found[2], batch, (), np.int32)
    if check_errors and info.any():
        raise RuntimeError("torch.linalg.ldl_factor_ex: Factorization failed")
    pivots = stacked([_from_one(p) for p in found[1]], batch, shape[:1], np.int32)
    packed = stacked(found[0], batch, shape, array.dtype)
    return column_major(packed, self.dtype, self), int_result(pivots, self), int_result(info, self)


def _from_one(pivots: Array) -> Array:
    """LAPACK's pivots, which count from 1; SciPy already gives them so."""
    return np.asarray(pivots)


ldl_factor_ex = linalg(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) "
    "-> (Tensor LD, Tensor pivots, Tensor info)",
    doc="The LDL factorisation of symmetric matrices in packed form, with LAPACK's codes.",
    run=_ldl_factor_ex,
)
linalg(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    doc="The LDL factorisation of symmetric matrices in packed form.",
    composite=lambda self, hermitian=False: tuple(ldl_factor_ex.call(self, hermitian, True))[:2],
)


def _ldl_matrix(packed: Array, pivots: Array, hermitian: bool) -> Array:
    """The matrix that a packed LDL factorisation stands for."""
    size = packed.shape[0]
    lower, diagonal = np.eye(size, dtype=packed.dtype), np.zeros_like(packed)
    k = 0
    while k < size:
        two = pivots[k] < 0
        width = 2 if two else 1
        block = np.tril(packed[k : k + width, k : k + width])
        turned = np.conj(block.T) if hermitian else block.T
        diagonal[k : k + width, k : k + width] = block + turned - np.diag(np.diagonal(block))
        step = np.eye(size, dtype=packed.dtype)
        step[k + width :, k : k + width] = packed[k + width :, k : k + width]
        swap = np.eye(size, dtype=packed.dtype)
        a, b = k + width - 1, abs(int(pivots[k])) - 1
        swap[[a, b]] = swap[[b, a]]
        lower = lower @ swap @ step
        k += width
    return lower @ diagonal @ (np.conj(lower.T) if hermitian else lower.T)


def _check_ldl(LD: Tensor, pivots: Tensor, B: Tensor) -> None:
    name = "torch.linalg.ldl_solve"
    if LD.dtype is not B.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {scalar_name(B.dtype)} and A of type "
            f"{scalar_name(LD.dtype)} instead."
        )
    rows, columns = (B.shape[wrap_dim(dim, B._array.ndim, scalar=False)] for dim in (-2, -1))
    if rows != LD.shape[-1]:
        n = LD.shape[-1]
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is {rows} by "
            f"{columns}"
        )
    if list(pivots.shape) != list(LD.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if pivots.dtype.category != INTEGER:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {scalar_name(pivots.dtype)}")


def _ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Tensor:
    check_square("torch.linalg.ldl_solve", LD)
    check_float("torch.linalg.ldl_solve", LD)
    _check_ldl(LD, pivots, B)
    need_lapack("ldl_solve_kernel_cpu", LD)
    wide = np.complex128 if LD.dtype.is_complex else np.float64
    a, b = resolved(LD).astype(wide), resolved(B).astype(wide)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    places = np.ndindex(*a.shape[:-2])
    whole = stacked(
        [_ldl_matrix(a[i], pivots._array[i], hermitian) for i in places], a.shape[:-2], a.shape[-2:], a.dtype
    )
    x = np.linalg.solve(whole, np.broadcast_to(b, (*batch, *b.shape[-2:]))) if whole.size and b.size else np.zeros(
        (*batch, *b.shape[-2:]), b.dtype)  # fmt: skip
    return column_major(x, B.dtype, B)


linalg(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    doc="The solutions of A X = B, from the LDL factorisation of A.",
    run=_ldl_solve,
)
