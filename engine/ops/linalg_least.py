"""Least squares, pseudo-inverses, ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import float32, float64, int64, scalar_name
from stridescope.engine.layout import broadcast_shapes
from stridescope.engine.ops.choice import where
from stridescope.engine.ops.linalg_common import blank, check_square, column_major, each, linalg, stacked
from stridescope.engine.ops.linalg_eigen import eigvalsh, singular_values
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.ops.valueless import need_values
from stridescope.engine.tensor import Tensor, bump_version, fresh

# ---- pseudo-inverse ----------------------------------------------------------------------------------------------


def _eps(A: Tensor) -> float:
    return float(np.finfo(A.dtype.to_real().np).eps)


def tolerances(A: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """What counts as zero among the singular values: PyTorch's defaults where none are given."""
    default = _eps(A) * max(A.shape[-2:])
    if rtol is None:
        given = atol is not None and (bool((atol > 0).any()) if isinstance(atol, Tensor) else atol > 0)
        rtol = 0.0 if given and not isinstance(atol, Tensor) else default
        if isinstance(atol, Tensor):
            rtol = where.call(atol > 0, 0.0, default)
    return 0.0 if atol is None else atol, rtol


def _limit(largest: Tensor, atol: Any, rtol: Any) -> Tensor:
    atol = atol.unsqueeze(-1) if isinstance(atol, Tensor) and atol._array.ndim else atol
    rtol = rtol.unsqueeze(-1) if isinstance(rtol, Tensor) and rtol._array.ndim else rtol
    relative = largest * rtol
    if isinstance(atol, Tensor):
        return relative.maximum(atol.to(relative.dtype))  # type: ignore[no-any-return]
    return relative.clamp(min=atol)  # type: ignore[no-any-return]


def _pinv_run(self: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    if self._array.ndim < 2 or self.dtype.to_real() not in (float32, float64):
        raise RuntimeError(
            f"linalg.pinv({scalar_name(self.dtype)}{{{list(self.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    A = self.detach()
    if not A._array.size:
        shape = (*A.shape[:-2], A.shape[-1], A.shape[-2])
        return wrapped(np.zeros(shape, A.dtype.np), A.dtype, A)
    atol, rtol = tolerances(A, atol, rtol)
    if hermitian:
        check_square("linalg.eigh", A)
        values, vectors = np.linalg.eigh(resolved(A))
        size = fresh(np.abs(values), A.dtype.to_real(), A.device)
        limit = _limit(size.amax(-1, True), atol, rtol)._array
        inverse = np.where(size._array > limit, 1 / np.where(values == 0, 1, values), 0)
        result = (vectors * inverse[..., None, :]) @ np.conj(np.swapaxes(vectors, -1, -2))
        return wrapped(result.astype(A.dtype.np), A.dtype, A)
    u, s, vh = np.linalg.svd(resolved(A), full_matrices=False)
    limit = _limit(fresh(s[..., :1].copy(), A.dtype.to_real(), A.device), atol, rtol)._array
    inverse = np.where(s > limit, 1 / np.where(s == 0, 1, s), 0)
    result = (np.conj(np.swapaxes(vh, -1, -2)) * inverse[..., None, :]) @ np.conj(np.swapaxes(u, -1, -2))
    return wrapped(result.astype(A.dtype.np), A.dtype, A)


def pinv_grad(grad: Tensor, P: Tensor, A: Tensor) -> Tensor:
    """The gradient of a pseudo-inverse P of A (``pinv_backward``)."""
    m, n = A.shape[-2:]
    Ph, gradh = P.mH, grad.mH
    if m <= n:
        K = gradh @ P
        KPh = K @ Ph
        return -(P @ K).mH + KPh - (A @ P) @ KPh + (Ph @ P) @ (gradh - K @ A)  # type: ignore[no-any-return]
    K = P @ gradh
    PhK = Ph @ K
    return -(K @ P).mH + (gradh - A @ K) @ P @ Ph + PhK - (PhK @ P) @ A  # type: ignore[no-any-return]


_pinv_op = linalg(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) "
    "-> Tensor",
    doc="The Moore-Penrose inverse, which every matrix has.",
    run=_pinv_run,
    node="LinalgPinvBackward0",
    grads={"self": lambda grad, result, self: pinv_grad(grad, result, self)},
)


def pinv(A: Tensor, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """``torch.linalg.pinv``."""
    return _pinv_op.call(A, atol, rtol, hermitian)  # type: ignore[no-any-return]


linalg(
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    doc="The Moore-Penrose inverse, which every matrix has.",
    composite=lambda self, atol=None, rtol=None, hermitian=False: pinv(self, atol, rtol, hermitian),
)
for _overload, _kind in (("", "float rcond"), (".rcond_tensor", "Tensor rcond")):
    linalg(
        f"linalg_pinv{_overload}(Tensor self, {_kind}, bool hermitian=False) -> Tensor",
        doc="The Moore-Penrose inverse; singular values below rcond times the largest count as zero.",
        composite=lambda self, rcond, hermitian=False: pinv(self, 0.0, rcond, hermitian),
    )
define(
    "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    doc="The Moore-Penrose inverse.",
    composite=lambda self, rcond=1e-15: pinv(self, 0.0, rcond, False),
)

# ---- rank --------------------------------------------------------------------------------------------------------


def _rank(self: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    if self._array.ndim < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if self.dtype.to_real() not in (float32, float64):
        raise RuntimeError("This function doesn't handle types other than float and double")
    A = self.detach()
    if not A._array.size:
        return blank(A, A.shape[:-2], int64)
    atol, rtol = tolerances(A, atol, rtol)
    values = eigvalsh(A).abs() if hermitian else singular_values(A)
    limit = _limit(values.amax(-1, True), atol, rtol)
    rank: Tensor = (values > limit).sum(-1)
    bump_version(rank)  # PyTorch sums into a tensor that it has made before
    return rank


_RANK_DOC = "How many singular values are larger than the tolerance."
for _overload, _argument, _kind in (("atol_rtol_tensor", "input", "Tensor"), ("atol_rtol_float", "self", "float")):
    linalg(
        f"linalg_matrix_rank.{_overload}(Tensor {_argument}, *, {_kind}? atol=None, {_kind}? rtol=None, "
        "bool hermitian=False) -> Tensor",
        doc=_RANK_DOC,
        composite=lambda a, atol=None, rtol=None, hermitian=False: _rank(a, atol, rtol, hermitian),
    )
for _overload, _argument, _kind in (("", "self", "float"), (".tol_tensor", "input", "Tensor")):
    linalg(
        f"linalg_matrix_rank{_overload}(Tensor {_argument}, {_kind} tol, bool hermitian=False) -> Tensor",
        doc=_RANK_DOC,
        composite=lambda a, tol, hermitian=False: _rank(a, tol, 0.0, hermitian),
    )

# ---- least squares -----------------------------------------------------------------------------------------------

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _vectors(a: Tensor, b: Tensor) -> bool:
    """Whether b is a batch of vectors."""
    return a._array.ndim - 1 == b._array.ndim and tuple(a.shape[:-1]) == tuple(b.shape)


def _check_lstsq(self: Tensor, b: Tensor, driver: str | None) -> bool:
    if self._array.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if b._array.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if self.dtype is not b.dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
                           f"{scalar_name(self.dtype)} and other's dtype {scalar_name(b.dtype)}")  # fmt: skip
    if not 0 <= self._array.ndim - b._array.ndim <= 1:
        raise RuntimeError("torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - "
                           "other.dim()) <= 1")  # fmt: skip
    vector = _vectors(self, b)
    rows = b.shape[-1] if vector else b.shape[-2] if b._array.ndim > 1 else -1
    if rows != self.shape[-2]:
        which = "-1" if vector else "-2"
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size({which})")
    if self.dtype.to_real() not in (float32, float64):
        raise RuntimeError("This function doesn't handle types other than float and double")
    if driver is not None and driver not in DRIVERS:
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    return vector


def _lstsq(self: Tensor, b: Tensor, rcond: float | None, driver: str | None) -> tuple[Tensor, ...]:
    need_values("linalg_lstsq.out", self, b)
    vector = _check_lstsq(self, b, driver)
    if self._array.ndim != b._array.ndim:  # PyTorch takes b for a batch of vectors here, whatever its sizes
        broadcast_shapes(self._array.shape[:-2], b._array.shape[:-1])
    driver = driver or "gelsy"
    A, B = resolved(self), resolved(b)
    B = B[..., None] if vector else B
    m, n = A.shape[-2:]
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    A, B = np.broadcast_to(A, (*batch, m, n)), np.broadcast_to(B, (*batch, *B.shape[-2:]))
    cut = _eps(self) * max(m, n) if rcond is None else rcond

    def one(a: Any, rhs: Any) -> tuple[Any, int, Any]:
        x, _, rank, values = np.linalg.lstsq(a, rhs, rcond=cut)
        return x, rank, values

    found = each(one, A, B, outputs=3)
    x = stacked(found[0], batch, (n, B.shape[-1]), self.dtype.np)
    own = tuple(slice(None if size > 1 else 1) for size in self._array.shape[:-2])  # rank and values are of self alone
    ranks = stacked(found[1], batch, (), np.int64)[own]
    values = stacked(found[2], batch, (min(m, n),), self.dtype.to_real().np)[own]
    real = self.dtype.to_real()
    rest = np.zeros((0,), real.np)
    if m > n and driver != "gelsy" and bool((ranks == n).all()):
        rest = np.sum(np.abs(A @ x - B) ** 2, -2)
    solution = wrapped(x[..., 0], self.dtype, self) if vector else _within(x, m, self)
    kept = wrapped(ranks if driver != "gels" else np.zeros((0,), np.int64), int64, self)
    singular = values if driver in ("gelsd", "gelss") else np.zeros((0,), real.np)
    return solution, wrapped(rest, real, self), kept, wrapped(singular, real, self)


def _within(x: Any, rows: int, self: Tensor) -> Tensor:
    """The solution as the upper part of the right-hand side's memory, where LAPACK leaves it."""
    n, k = x.shape[-2:]
    if n >= rows:
        return column_major(x, self.dtype, self)
    whole = np.concatenate([x, np.zeros((*x.shape[:-2], rows - n, k), x.dtype)], -2)
    return column_major(whole, self.dtype, self).narrow(-2, 0, n).detach()  # type: ignore[no-any-return]


def _lstsq_grads(grads: Any, self: Tensor, b: Tensor, solution: Tensor, needs: Any) -> tuple[Any, Any]:
    gX, gR = grads[:2]
    vector = _vectors(self, b)
    B, X = (b.unsqueeze(-1), solution.unsqueeze(-1)) if vector else (b, solution)
    gA: Any = None
    gB: Any = None
    if gX is not None:
        gX = gX.unsqueeze(-1) if vector else gX
        P = pinv(self)
        gA, gB = pinv_grad(gX @ B.mH, P, self), P.mH @ gX
    if gR is not None and gR._array.size:
        slope = 2 * gR.unsqueeze(-2) * (self @ X - B)
        gA, gB = (slope @ X.mH, -slope) if gA is None else (gA + slope @ X.mH, gB - slope)
    return gA, gB.squeeze(-1) if vector and gB is not None else gB


linalg(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) "
    "-> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    doc="The X that makes A X - B smallest.",
    run=_lstsq,
    grads={"self,b": _lstsq_grads},
    differentiable_outputs=[0, 1],
)
