"""The gradients of a matrix product's factors, in the layout of the factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine.ops.arithmetic import conj, scaled


def _column_major(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    return strides[0] == 1 and strides[1] == sizes[0]


def first_factor_grad(grad: Any, second: Any, sizes: Sequence[int], strides: Sequence[int], alpha: Any) -> Any:
    """The gradient of a product's first factor, laid out column by column where the factor is."""
    if _column_major(sizes, strides):
        return scaled(conj(second).mm(grad.t()).t(), conj(alpha))
    return scaled(grad.mm(conj(second.t())), conj(alpha))


def second_factor_grad(grad: Any, first: Any, sizes: Sequence[int], strides: Sequence[int], alpha: Any) -> Any:
    """The gradient of a product's second factor, laid out column by column where the factor is."""
    if _column_major(sizes, strides):
        return scaled(grad.t().mm(conj(first)).t(), conj(alpha))
    return scaled(conj(first.t()).mm(grad), conj(alpha))
