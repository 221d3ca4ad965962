"""Singular values and eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import may_be_differentiated
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, scalar_name
from stridescope.engine.ops.arithmetic import real_if
from stridescope.engine.ops.linalg_common import (
    check_float,
    check_matrix,
    check_square,
    column_major,
    linalg,
    need_lapack,
)
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.tensor import Tensor

FREE = "in the complex case are specified up to multiplication by e^{i phi}. The specified loss function depends on"
SVD_PHASE = f"svd_backward: The singular vectors {FREE} this phase term, making it ill-defined."
EIG_PHASE = f"_backward: The eigenvectors {FREE} this quantity, so it is ill-defined."

# ---- singular values ---------------------------------------------------------------------------------------------


def _svd(A: Tensor, full_matrices: bool, compute_uv: bool, driver: str | None) -> tuple[Tensor, Tensor, Tensor]:
    check_matrix("linalg.svd", A)
    check_float("linalg.svd", A, "linalg_svd_cpu")
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    array = resolved(A)
    array = array.astype(np.float32) if array.dtype.itemsize == 2 else array  # an empty one: others were refused
    if not compute_uv:
        s = np.linalg.svd(array, compute_uv=False)
        empty = np.empty((0,), array.dtype)
        return wrapped(empty, A.dtype, A), wrapped(s, A.dtype.to_real(), A), wrapped(empty.copy(), A.dtype, A)
    u, s, vh = np.linalg.svd(array, full_matrices=full_matrices)
    return column_major(u, A.dtype, A), wrapped(s, A.dtype.to_real(), A), column_major(vh, A.dtype, A)


def _skew(x: Tensor) -> Tensor:
    result: Tensor = x - x.mH
    return result


def _one_on_diagonal(x: Tensor) -> Tensor:
    x.diagonal(0, -2, -1).fill_(1)
    return x


def _svd_grad(grads: Any, U: Tensor, S: Tensor, Vh: Tensor, k: int) -> Any:
    """The gradient of A = U S V^H; parts of U and V outside the first k vectors carry none."""
    gU, gS, gVh = grads
    m, n = U.shape[-2], Vh.shape[-1]
    U, gU = (_first(t, -1, k) for t in (U, gU))
    Vh, gVh = (_first(t, -2, k) for t in (Vh, gVh))
    if gU is None and gVh is None:
        return U @ (gS.unsqueeze(-1) * Vh) if m >= n else (U * gS.unsqueeze(-2)) @ Vh
    left = _skew(U.mH @ gU) if gU is not None else None
    right = _skew(Vh @ gVh.mH) if gVh is not None else None
    inner = _turned(left, right, S)
    if U.dtype.is_complex:
        _check_phase(left, right)
        if left is not None:
            inner = inner + (left / (2.0 * S.unsqueeze(-2))).diagonal(0, -2, -1).diag_embed()
    if gS is not None:
        inner = inner + gS.diag_embed()
    return _outside(U, S, Vh, gU if m > k else None, gVh if n > k else None, inner)


def _first(x: Any, dim: int, count: int) -> Any:
    """The first vectors; the others belong to no singular value."""
    return x if x is None or x.shape[dim] == count else x.narrow(dim, 0, count)


def _turned(left: Tensor | None, right: Tensor | None, S: Tensor) -> Any:
    square = S * S
    gaps = _one_on_diagonal(square.unsqueeze(-2) - square.unsqueeze(-1))
    if left is None:
        assert right is not None
        return S.unsqueeze(-1) * (right / gaps)
    if right is None:
        return (left / gaps) * S.unsqueeze(-2)
    return (left * S.unsqueeze(-2) + S.unsqueeze(-1) * right) / gaps


def _check_phase(left: Tensor | None, right: Tensor | None) -> None:
    """A loss may not depend on the free phase of complex singular vectors."""
    total = right if left is None else left if right is None else left + right
    if total is None:
        return
    angle = total.diagonal(0, -2, -1).imag
    if not bool((angle.abs() < 1e-2).all()):
        raise RuntimeError(SVD_PHASE)


def _outside(U: Tensor, S: Tensor, Vh: Tensor, gU: Tensor | None, gVh: Tensor | None, inner: Tensor) -> Any:
    """Add what U and V gain outside the space that they span."""
    if gU is not None:
        scaled = gU / S.unsqueeze(-2)
        inner = U @ inner + scaled - U @ (U.mH @ scaled)
        return inner @ Vh
    if gVh is not None:
        scaled = gVh / S.unsqueeze(-1)
        return U @ (inner @ Vh + scaled - (scaled @ Vh.mH) @ Vh)
    return U @ (inner @ Vh) if U.shape[-2] >= Vh.shape[-1] else (U @ inner) @ Vh


svd_op = define(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
    "-> (Tensor U, Tensor S, Tensor Vh)",
    doc="The singular value decomposition A = U diag(S) Vh.",
    run=_svd,
    node="LinalgSvdBackward0",
    grads={
        "A": lambda grads, full_matrices, S_sym_argsize_minus_1, U, S, Vh: _svd_grad(
            grads, U, S, Vh, S_sym_argsize_minus_1
        )
    },
    method=False,
    function=False,
)
linalg(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    doc="The singular value decomposition A = U diag(S) Vh.",
    composite=lambda A, full_matrices=True, driver=None: tuple(svd_op.call(A, full_matrices, True, driver)),
)


def singular_values(A: Tensor) -> Tensor:
    """``torch.linalg.svdvals``; the vectors are computed too when a gradient will need them."""
    return svd_op.call(A, False, may_be_differentiated(A), None)[1]  # type: ignore[no-any-return]


linalg(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    doc="The singular values, largest first.",
    composite=lambda A, driver=None: svd_op.call(A, False, may_be_differentiated(A), driver)[1],
)


def _old_svd(self: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    if self._array.ndim < 2:
        dims = self._array.ndim
        raise RuntimeError(f"linalg.svd: input should have at least 2 dimensions, but has {dims} dimensions instead")
    if not compute_uv:
        m, n = self.shape[-2:]
        s = singular_values(self)
        batch = tuple(self.shape[:-2])
        return self.new_zeros((*batch, m, m)), s, self.new_zeros((*batch, n, n))
    U, S, Vh = svd_op.call(self, not some, True, None)
    return U, S, Vh.mH


define(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    doc="The singular value decomposition self = U diag(S) V^H.",
    composite=_old_svd,
    out=Out(counts_third=2),
)

# ---- symmetric matrices ------------------------------------------------------------------------------------------


def _eigh(A: Tensor, UPLO: str, compute_v: bool) -> tuple[Tensor, Tensor]:
    check_square("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    need_lapack("linalg_eigh_cpu", A)
    array = resolved(A)
    if array.size:
        values, vectors = np.linalg.eigh(array, "L" if UPLO.upper() == "L" else "U")
    else:  # of any dtype
        values, vectors = np.empty(array.shape[:-1], A.dtype.to_real().np), array.copy()
    if not compute_v:
        vectors = np.empty((0,), A.dtype.np)
    return wrapped(values, A.dtype.to_real(), A), column_major(vectors, A.dtype, A)


def _eigh_grad(grads: Any, L: Tensor, V: Tensor) -> Tensor:
    gL, gV = grads
    if gV is None:
        return (V * gL.unsqueeze(-2)) @ V.mH  # type: ignore[no-any-return]
    inner = V.mH @ gV
    if V.dtype.is_complex and not bool((inner.diagonal(0, -2, -1).imag.abs() < 1e-2).all()):
        raise RuntimeError("linalg_eigh" + EIG_PHASE)
    inner = (inner - inner.mH) * 0.5 / _one_on_diagonal(L.unsqueeze(-2) - L.unsqueeze(-1))
    diagonal = inner.diagonal(0, -2, -1)
    diagonal.zero_() if gL is None else diagonal.copy_(gL)
    return V @ (inner @ V.mH)  # type: ignore[no-any-return]


_eigh_op = define(
    "_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
    doc="Eigenvalues and eigenvectors of symmetric or Hermitian matrices.",
    run=_eigh,
    node="LinalgEighBackward0",
    grads={"A": lambda grads, eigenvalues, eigenvectors: _eigh_grad(grads, eigenvalues, eigenvectors)},
    method=False,
    function=False,
)
linalg(
    "linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
    doc="Eigenvalues, smallest first, and eigenvectors of symmetric or Hermitian matrices.",
    composite=lambda self, UPLO="L": tuple(_eigh_op.call(self, UPLO, True)),
)


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """``torch.linalg.eigvalsh``."""
    return _eigh_op.call(A, UPLO, may_be_differentiated(A))[0]  # type: ignore[no-any-return]


linalg(
    "linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor",
    doc="Eigenvalues of symmetric or Hermitian matrices, smallest first.",
    composite=lambda self, UPLO="L": eigvalsh(self, UPLO),
)

# ---- general matrices --------------------------------------------------------------------------------------------


def _check_eig(self: Tensor, name: str = "linalg.eig") -> None:
    if self.dtype.category < FLOAT:
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(self.dtype)}")
    check_square(name, self)
    if not np.all(np.isfinite(resolved(self))):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")


def _eig(self: Tensor) -> tuple[Tensor, Tensor]:
    _check_eig(self)
    need_lapack("linalg_eig_out_cpu", self, empty=True)
    kind = self.dtype.to_complex()
    values, vectors = np.linalg.eig(resolved(self).astype(kind.np))
    if not self.dtype.is_complex:
        values, vectors = np.linalg.eig(resolved(self))
    return wrapped(values.astype(kind.np), kind, self), column_major(vectors.astype(kind.np), kind, self)


def _eig_grad(grads: Any, self: Tensor, L: Tensor, V: Tensor) -> Tensor:
    from stridescope.engine.ops.linalg_solve import solve

    gL, gV = grads
    if gV is None:
        inner = gL.unsqueeze(-1) * V.mH
    else:
        product = V.mH @ gV
        diagonal = product.diagonal(0, -2, -1)
        if not bool((diagonal.imag.abs() < 1e-2).all()):
            raise RuntimeError("linalg_eig" + EIG_PHASE)
        product = product - (V.mH @ V) * diagonal.real.unsqueeze(-2)
        gaps = L.unsqueeze(-2) - L.unsqueeze(-1)
        product = product / _one_on_diagonal(gaps).conj()
        product = product - product.diagonal(0, -2, -1).diag_embed()
        if gL is not None:
            product = product + gL.diag_embed()
        inner = product @ V.mH
    return real_if(self.dtype, solve(V.mH, inner))


_eig_op = linalg(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    doc="Eigenvalues and eigenvectors of square matrices; always complex.",
    run=_eig,
    grads={"self": lambda grads, self, eigenvalues, eigenvectors: _eig_grad(grads, self, eigenvalues, eigenvectors)},
)


def _eigvals(self: Tensor) -> Tensor:
    if may_be_differentiated(self):
        return _eig_op.call(self)[0]  # type: ignore[no-any-return]
    _check_eig(self, "linalg.eigvals")
    need_lapack("linalg_eig_out_cpu", self, empty=True)
    kind = self.dtype.to_complex()
    return wrapped(np.linalg.eigvals(resolved(self)).astype(kind.np), kind, self)


linalg(
    "linalg_eigvals(Tensor self) -> Tensor",
    doc="Eigenvalues of square matrices.",
    composite=_eigvals,
)
