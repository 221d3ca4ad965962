"""Rows with their mean taken out and divided by their deviation, and the way back: what the norms of layers share.

All is computed in double precision, as PyTorch's CPU kernels accumulate. A batch norm has one row per channel, a
layer norm one per sample, a group norm one per sample and group. Statistics are columns, shape (rows, 1).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
SHORT = 4096  # elements of a row that a product with ones adds up in a third of the time of NumPy's sum
_sum: Any = np.add.reduce  # the array's own method takes longer


def as_rows(array: Array, count: int) -> Array:
    """A copy in double precision, cut into ``count`` rows; ``array`` has elements."""
    return array.astype(np.float64, "C").reshape(count, -1)


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
    count = rows.shape[1]
    total = rows.dot(_ones(count)) if count <= SHORT else _sum(rows, 1)
    return np.divide(total, float(count), total)[:, None]  # type: ignore[no-any-return]


@functools.lru_cache(64)
def _ones(count: int) -> Array:
    return np.ones(count)


def _mean_of_product(first: Array, second: Array) -> Array:
    total = np.vecdot(first, second)
    return np.divide(total, float(first.shape[1]), total)[:, None]  # type: ignore[no-any-return]
