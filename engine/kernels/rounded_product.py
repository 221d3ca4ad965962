"""Products of half-precision elements, which PyTorch's CPU kernel rounds after every multiplication.

The order is that of ``binary_kernel_reduce_vec`` (``aten/src/ATen/native/cpu/Reduce.h``): four vectors side by side
along an inner dim that is long enough, else element by element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stridescope.engine.kernels.cascade import LANES, Array

VECTORS = 4


def rounded_product(array: Array, over: Sequence[int]) -> Array:
    """The products of a float16 or bfloat16 array over these dims, which go away."""
    kept = [d for d in range(array.ndim) if d not in over]
    order = sorted(over, key=lambda d: (-abs(array.strides[d] or 1 << 62), d))  # as the elements lie in memory
    shape = [array.shape[d] for d in kept]
    run = _run(array, order)
    rows = array.transpose(*kept, *order).reshape(*shape, math.prod(array.shape[d] for d in order) // run, run)
    total = np.ones(shape, array.dtype)
    wide = VECTORS * LANES[array.itemsize]
    whole = run // wide * wide
    for row in range(rows.shape[-2]):
        if whole:
            blocks = rows[..., row, :whole].reshape(*shape, -1, VECTORS, wide // VECTORS)
            total = _times(total, _by_vectors(blocks))
        for place in range(whole, run):
            total = _times(total, rows[..., row, place])
    return total


def _run(array: Array, order: Sequence[int]) -> int:
    """How many elements lie one behind the other along the innermost of these dims; at least 1."""
    run = 1
    for dim in reversed(order):
        if array.shape[dim] != 1 and array.strides[dim] != run * array.itemsize:
            break
        run *= array.shape[dim]
    return max(run, 1)


def _by_vectors(blocks: Array) -> Array:
    """The products of blocks of vectors: block by block, then the vectors in pairs, then lane by lane."""
    total = blocks[..., 0, :, :]
    for place in range(1, blocks.shape[-3]):
        total = _times(total, blocks[..., place, :, :])
    first, second, third, fourth = (total[..., v, :] for v in range(VECTORS))
    lanes = _times(_times(first, second), _times(third, fourth))
    product = lanes[..., 0]
    for lane in range(1, lanes.shape[-1]):
        product = _times(product, lanes[..., lane])
    return product


def _times(a: Array, b: Array) -> Array:
    """The product, computed in float32 and rounded once."""
    return np.asarray(np.multiply(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype))
