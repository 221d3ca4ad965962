"""Rows with their mean taken out and divided by their deviation, and the way back: what the norms of layers share.

All is computed in double precision, as PyTorch's CPU kernels accumulate. A batch norm has one row per channel, a
layer norm one per sample, a group norm one per sample and group. Statistics are columns, shape (rows, 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_sum: Any = np.add.reduce  # the array's own method takes longer


def as_rows(array: Array, count: int) -> Array:
    """A copy in double precision, cut into ``count`` rows; ``array`` has elements."""
    return np.array(array, np.float64, order="C").reshape(count, -1)


def centre(rows: Array) -> tuple[Array, Array]:
    """Take its mean out of each row; gives the means and the biased variances."""
    mean = _mean(rows)
    np.subtract(rows, mean, rows)
    return mean, _mean_of_product(rows, rows)


def inverse_deviation(var: Array, eps: float) -> Array:
    """One over the square root of the variance and ``eps``."""
    found = var + eps
    np.sqrt(found, found)
    return np.reciprocal(found, found)


def gradient_of_rows(grad: Array, hat: Array, rstd: Array) -> Array:
    """The gradient of the rows from that of the normalised ones, ``hat``; written over ``grad``."""
    share = hat * _mean_of_product(grad, hat)
    share += _mean(grad)
    np.subtract(grad, share, grad)
    return np.multiply(grad, rstd, grad)


def _mean(rows: Array) -> Array:
    total = _sum(rows, 1, keepdims=True)
    return np.divide(total, rows.shape[1], total)  # type: ignore[no-any-return]


def _mean_of_product(first: Array, second: Array) -> Array:
    total = np.vecdot(first, second)[:, None]
    return np.divide(total, first.shape[1], total)  # type: ignore[no-any-return]
