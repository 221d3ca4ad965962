"""Convolutions of any number of dims: windows by strides, columns, and one matrix product (im2col and BLAS).

Arrays are (batch, channels, *sizes) and weights (out channels, in channels per group, *kernel). Products of half
precisions are added up in float32, and rounded where PyTorch's CPU kernels write them down: each column before it is
added to the others (col2im), the sum after each column, and a gradient of the weight after each element of the batch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

Array = np.ndarray[Any, Any]
Ints = Sequence[int]


class Geometry(NamedTuple):
    """How a kernel moves: one number for each dim."""

    stride: Ints
    padding: Ints
    dilation: Ints
    groups: int


def output_sizes(sizes: Ints, kernel: Ints, how: Geometry) -> tuple[int, ...]:
    """The sizes of a convolution's result."""
    return tuple(
        (size + 2 * pad - (dilation * (k - 1) + 1)) // stride + 1
        for size, k, stride, pad, dilation in zip(sizes, kernel, how.stride, how.padding, how.dilation, strict=True)
    )


def padded(array: Array, padding: Ints) -> Array:
    """The array with zeros around its last dims."""
    if not any(padding):
        return array
    wide = np.zeros(
        (*array.shape[:2], *(s + 2 * p for s, p in zip(array.shape[2:], padding, strict=True))), array.dtype
    )
    wide[(slice(None), slice(None), *(slice(p, p + s) for s, p in zip(array.shape[2:], padding, strict=True)))] = array
    return wide


def windows(array: Array, kernel: Ints, out: Ints, how: Geometry) -> Array:
    """A view of a padded array: (batch, channels, *kernel, *out)."""
    batch, channels, *steps = array.strides
    inner = [s * d for s, d in zip(steps, how.dilation, strict=True)]
    outer = [s * d for s, d in zip(steps, how.stride, strict=True)]
    shape = (*array.shape[:2], *kernel, *out)
    return as_strided(array, shape, (batch, channels, *inner, *outer), writeable=False)


def columns(array: Array, kernel: Ints, out: Ints, how: Geometry) -> Array:
    """(batch, groups, channels per group * kernel, positions): what the weights are multiplied with."""
    count, channels = array.shape[:2]
    groups = how.groups
    shape = (count, groups, channels // groups * math.prod(kernel), math.prod(out))
    return windows(padded(array, how.padding), kernel, out, how).reshape(shape)


def wide(*arrays: Array) -> list[Array]:
    """Half precisions as float32, others as they are."""
    return [a.astype(np.float32) if a.dtype.itemsize == 2 and a.dtype.kind not in "iu" else a for a in arrays]


def forward(array: Array, weight: Array, how: Geometry, bias: Array | None = None) -> Array:
    """The convolution."""
    kind = array.dtype
    array, weight = wide(array, weight)
    kernel = weight.shape[2:]
    out = output_sizes(array.shape[2:], kernel, how)
    outs = weight.shape[0]
    matrix = weight.reshape((how.groups, outs // how.groups, math.prod(weight.shape[1:])))
    result = np.matmul(matrix, columns(array, kernel, out, how)).reshape((array.shape[0], outs, *out))
    if bias is not None:
        result = result + wide(bias)[0].reshape((-1, *(1,) * len(out)))
    return result.astype(kind, copy=False)  # type: ignore[no-any-return]


def backward_input(grad: Array, weight: Array, sizes: Ints, how: Geometry) -> Array:
    """The gradient of the input, which is the transposed convolution of ``grad``; ``sizes`` are the input's."""
    kind = grad.dtype
    grad, weight = wide(grad, weight)
    kernel, out, groups = weight.shape[2:], grad.shape[2:], how.groups
    matrix = weight.reshape((groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))).swapaxes(1, 2)
    parts = np.matmul(matrix, grad.reshape((grad.shape[0], groups, grad.shape[1] // groups, math.prod(out))))
    channels = weight.shape[1] * groups
    parts = parts.reshape((grad.shape[0], channels, *kernel, *out)).astype(kind, copy=False)
    return _gathered(parts, kernel, out, sizes, how)


def _gathered(parts: Array, kernel: Ints, out: Ints, sizes: Ints, how: Geometry) -> Array:
    """Add the columns up where their windows stood (col2im), and take the padding off."""
    full = tuple(s + 2 * p for s, p in zip(sizes, how.padding, strict=True))
    total = np.zeros((*parts.shape[:2], *full), parts.dtype)
    for at in itertools.product(*map(range, kernel)):
        place = tuple(
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, d, n, s in zip(at, how.dilation, out, how.stride, strict=True)
        )
        total[(slice(None), slice(None), *place)] += parts[(slice(None), slice(None), *at)]  # type: ignore[arg-type]
    inner = tuple(slice(p, p + s) for s, p in zip(sizes, how.padding, strict=True))
    return total[(slice(None), slice(None), *inner)]


def backward_weight(grad: Array, array: Array, kernel: Ints, how: Geometry) -> Array:
    """The gradient of the weight."""
    kind = grad.dtype
    grad, array = wide(grad, array)
    out, groups = grad.shape[2:], how.groups
    flat = grad.reshape((grad.shape[0], groups, grad.shape[1] // groups, math.prod(out)))
    products = np.matmul(flat, columns(array, kernel, out, how).swapaxes(2, 3))
    total = products.sum(0) if kind == products.dtype else _one_after_the_other(products, kind)
    return total.reshape((grad.shape[1], array.shape[1] // groups, *kernel))


def backward_bias(grad: Array, how: Geometry) -> Array:
    """The gradient of the bias; what dilated kernels add for each element of the batch, in half precision too."""
    inner = tuple(range(2, grad.ndim))
    if grad.dtype != (wider := wide(grad)[0]).dtype and any(d > 1 for d in how.dilation):
        return _one_after_the_other(wider.sum(inner).astype(grad.dtype).astype(wider.dtype), grad.dtype)
    return wider.sum((0, *inner)).astype(grad.dtype, copy=False)


def _one_after_the_other(parts: Array, kind: np.dtype[Any]) -> Array:
    """The sum over the first dim, rounded to ``kind`` after each summand."""
    total = np.zeros(parts.shape[1:], kind)
    for part in parts:
        total = (total.astype(parts.dtype) + part).astype(kind)
    return total


def fold(parts: Array, kernel: Ints, sizes: Ints, how: Geometry) -> Array:
    """Columns (batch, channels * kernel, positions) added up into (batch, channels, *sizes)."""
    out = output_sizes(sizes, kernel, how)
    channels = parts.shape[1] // math.prod(kernel)
    return _gathered(parts.reshape((parts.shape[0], channels, *kernel, *out)), kernel, out, sizes, how)
