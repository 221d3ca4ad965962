"""``torch.distributions.utils``: helpers that distributions of one's own use."""

from __future__ import annotations

import functools
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch.distributions.discrete import clamped as clamp_probs
from stridescope.engine.torch.distributions.discrete import odds_of, probability_of
from stridescope.engine.torch.distributions.distribution import broadcast_all

lazy_property = functools.cached_property


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities from log-odds, or from logarithms of classes' shares."""
    return probability_of(logits) if is_binary else torch.softmax(logits, dim=-1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Log-odds, or logarithms of classes' probabilities."""
    return odds_of(probs) if is_binary else torch.log(clamp_probs(probs))


def _below(size: int, diag: int, like: Any) -> Any:
    """Which elements of a (size, size) matrix lie on or below its ``diag``-th diagonal."""
    return torch.ones(size, size, dtype=torch.bool, device=like.device).tril(diag)


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """A batch of vectors (..., m) as lower triangular matrices (..., n, n), filled row by row up to a diagonal.

    Raises ValueError where no n gives m such elements.
    """
    length = vec.shape[-1]
    counts = (sum(min(max(row + 1 + diag, 0), n) for row in range(n)) for n in range(length + abs(diag) + 1))
    size = next((n for n, count in enumerate(counts) if count == length), None)
    if size is None:
        raise ValueError(f"The size of last dimension is {length} which cannot be expressed as the lower triangular "
                         "part of a square D x D matrix.")  # fmt: skip
    matrix = vec.new_zeros((*vec.shape[:-1], size, size))
    matrix[..., _below(size, diag, vec)] = vec
    return matrix


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The lower triangles of a batch of matrices (..., n, n), up to a diagonal, as vectors, row by row."""
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    return mat[..., _below(size, diag, mat)]


__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip
