"""How PyTorch's CPU kernels go through memory, where it shows in a gradient's numbers.

Tensors that fill their memory in the same order are read many elements at a time, the last few (and tensors with
gaps) one by one; the two loops of a kernel may take NaN for different sides of a bound. Half precisions are widened
to float32 within a kernel and rounded once, at its end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stridescope.engine.dtype import float32
from stridescope.engine.layout import Ints, is_non_overlapping_and_dense
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, fresh

_TURN = 64  # bytes of each operand that a turn of the loop takes: two AVX2 registers


def or_nan_in_lanes(condition: Tensor, grad: Tensor, self: Tensor) -> Tensor:
    """``condition``, and true for each NaN of ``self`` that a kernel of these two reads with others at a time."""
    if self.device.type == "meta" or not np.isnan(self._array).any():
        return condition
    many = _in_lanes(grad, self)
    if many is None:
        return condition
    nans: Tensor = condition.logical_or(fresh(np.isnan(self._array) & many, condition.dtype, self.device))
    return nans


def _in_lanes(grad: Tensor, self: Tensor) -> Array | None:
    """Which elements are read with others at a time; None if all are read one by one."""
    sizes, strides = self._array.shape, self.strides
    count = self._array.size
    whole = count - count % (_TURN // self.dtype.itemsize)
    if not whole or not is_non_overlapping_and_dense(sizes, strides) or not _runs_along(grad, sizes, strides):
        return None
    order = np.zeros(count, bool)
    order[:whole] = True  # bools have a byte each: strides in elements are theirs in bytes
    return np.lib.stride_tricks.as_strided(order, sizes, strides)


def _runs_along(grad: Tensor, sizes: Ints, strides: Ints) -> bool:
    """Whether the gradient lies in memory as the input does, or is one number everywhere."""
    steps = [step for step, size in zip(grad.strides, sizes, strict=True) if size > 1]
    return not any(steps) or steps == [step for step, size in zip(strides, sizes, strict=True) if size > 1]


def in_float(formula: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """``formula(*tensors)``; of half-precision tensors in float32, rounded once."""
    kind = tensors[0].dtype
    if kind.itemsize != 2:
        return formula(*tensors)
    return formula(*(tensor.to(float32) for tensor in tensors)).to(kind)  # type: ignore[no-any-return]
