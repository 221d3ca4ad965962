"""``beta * summand + alpha * product``: the arithmetic of addmm and its family."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dtype import FLOAT, FROM_NUMPY
from stridescope.engine.ops.number_range import number_of


def wide(array: Any) -> Any:
    """Half precisions are multiplied in float32."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind not in "iu" else array


def blended(summand: Any, result: Any, beta: Any, alpha: Any) -> Any:
    """The sum in the summand's dtype; with beta 0 the summand is not read, not even its NaN."""
    kind = FROM_NUMPY[result.dtype]
    if beta == 1 and alpha == 1 and summand.dtype == result.dtype and kind.category == FLOAT:
        return np.ascontiguousarray(result + summand)
    if alpha != 1:
        result = result * number_of(alpha, kind)
    if beta != 0:
        result = result + np.multiply(summand.astype(result.dtype), number_of(beta, kind))
    return np.ascontiguousarray(np.broadcast_to(result, result.shape).astype(summand.dtype))
