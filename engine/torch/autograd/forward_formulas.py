"""Tangents that the transposed backward formula would not give: it takes a matrix for symmetric, forward mode does not.

Each formula is for the tangent of the op's first argument: from the call's arguments, that tangent and the results to
one tangent for each result (None where there is none).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Formula = Callable[[Sequence[Any], Any, Sequence[Any]], tuple[Any, ...]]


def _eigh(args: Sequence[Any], tangent: Any, results: Sequence[Any]) -> tuple[Any, ...]:
    """The eigenvalues move by the diagonal of V^H dA V, the eigenvectors by the rest over the gaps between those."""
    values, vectors = results[0], results[1]
    if not vectors.numel():  # they were not asked for: eigenvalues alone come with none
        return (None, None)
    inside = vectors.mH @ tangent @ vectors
    moved = inside.diagonal(0, -2, -1)
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    gaps.diagonal(0, -2, -1).fill_(1)
    turned = inside - moved.diag_embed()
    return moved.real if moved.dtype.is_complex else moved, vectors @ (turned / gaps)


def _cholesky(args: Sequence[Any], tangent: Any, results: Sequence[Any]) -> tuple[Any, ...]:
    """dL = L times the lower half of L^-1 dA L^-H, the diagonal halved."""
    upper = bool(args[1])
    factor = results[0].mH if upper else results[0]
    solved = factor.inverse()
    inside = (solved @ tangent @ solved.mH).tril()
    inside = inside - (inside.diagonal(0, -2, -1) / 2).diag_embed()
    moved = factor @ inside
    return (moved.mH if upper else moved, *(None for _ in results[1:]))


def _cholesky_inverse(args: Sequence[Any], tangent: Any, results: Sequence[Any]) -> tuple[Any, ...]:
    """PyTorch's product, of the factor and its tangent as they are given: it takes X and the factor to commute."""
    upper = len(args) > 1 and bool(args[1])
    factor, moved = (args[0], tangent.mH) if upper else (args[0].mH, tangent)
    half = -results[0] @ moved @ results[0] @ factor
    return (half + half.mH,)


def _logcumsumexp(args: Sequence[Any], tangent: Any, results: Sequence[Any]) -> tuple[Any, ...]:
    """A running mean of the tangents, weighed by the exponentials; those beside an infinite one weigh nothing."""
    self, dim = args[0], args[1]
    weights = (self if self.dtype.is_complex or not self.dim() else self - self.max(dim, True).values).exp()
    return ((weights * tangent).cumsum(dim) / (weights.cumsum(dim) + 1e-13),)


FORMULAS: dict[str, Formula] = {
    "_linalg_eigh": _eigh,
    "cholesky_inverse": _cholesky_inverse,
    "linalg_cholesky_ex": _cholesky,
    "logcumsumexp": _logcumsumexp,
}
