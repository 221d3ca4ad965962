"""``torch.svd_lowrank`` and ``torch.pca_lowrank``: the largest singular values of a matrix, by random projection.

The algorithms are 4.4 and 5.1 of Halko, Martinsson and Tropp, "Finding structure with randomness" (2009); the random
matrix comes from the default generator, so the same seed gives PyTorch's values.
"""

from __future__ import annotations

from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor

_randn = FUNCTIONS["torch"]["randn"]
_qr, _svd = FUNCTIONS["torch.linalg"]["qr"], FUNCTIONS["torch.linalg"]["svd"]
Factors = tuple[Tensor, Tensor, Tensor]


def _basis(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Orthonormal columns (m, q) that nearly span the range of ``A - M``."""
    shifted = A if M is None else A - M
    drawn = _randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
    found: Tensor = _qr(shifted.matmul(drawn))[0]
    for _ in range(niter):
        found = _qr(shifted.mH.matmul(found))[0]
        found = _qr(shifted.matmul(found))[0]
    return found


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> Factors:
    """``U`` (…, m, q), ``S`` (…, q) and ``V`` (…, n, q) with ``U diag(S) Vᴴ`` close to ``A - M``.

    Args:
        A: matrices (…, m, n).
        q: how many singular values; a few more than the rank give a good result.
        niter: passes that sharpen the result.
        M: subtracted from ``A``.
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if M is not None:
        M = M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = A.mH, None if M is None else M.mH
    found = _basis(A, q, niter, M)
    small = found.mH.matmul(A if M is None else A - M)
    left, S, right = _svd(small, full_matrices=False)
    U, V = found.matmul(left), right.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Factors:
    """Principal components of the rows of ``A`` (…, m, n): the ``svd_lowrank`` of A less its columns' means.

    Raises:
        ValueError: ``q`` (by default ``min(6, m, n)``) or ``niter`` is out of range, or A is not floating point.
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter=niter)
    return svd_lowrank(A - A.mean(dim=(-2,), keepdim=True), q, niter=niter)
