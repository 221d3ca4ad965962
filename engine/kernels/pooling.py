"""Pooling of any number of dims over (batch, channels, *sizes): maxima with their places, and averages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Ints = Sequence[int]


class Windows(NamedTuple):
    """Where the windows stand: one number for each dim."""

    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    ceil_mode: bool


def output_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """How many windows fit; with ``ceil_mode`` also one that sticks out, if it begins inside."""
    reach = size + 2 * padding - dilation * (kernel - 1) - 1 + (stride - 1 if ceil_mode else 0)
    count = reach // stride + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def output_sizes(sizes: Ints, how: Windows) -> tuple[int, ...]:
    """The sizes of the result."""
    parts = zip(sizes, how.kernel, how.stride, how.padding, how.dilation, strict=True)
    return tuple(output_size(*part, how.ceil_mode) for part in parts)


def _lowest(array: Array) -> Any:
    return -np.inf if array.dtype.kind not in "iu" else np.iinfo(array.dtype).min


def _framed(array: Array, how: Windows, out: Ints, fill: Any) -> Array:
    """The array with ``fill`` around it, wide enough for every window."""
    sizes = array.shape[2:]
    ends = [
        max(s + p, (n - 1) * st - p + d * (k - 1) + 1)
        for s, n, k, st, p, d in zip(sizes, out, how.kernel, how.stride, how.padding, how.dilation, strict=True)
    ]
    shape = (*array.shape[:2], *(e + p for e, p in zip(ends, how.padding, strict=True)))
    if shape == array.shape:
        return array
    framed = np.full(shape, fill, array.dtype)
    inner = tuple(slice(p, p + s) for p, s in zip(how.padding, sizes, strict=True))
    framed[(slice(None), slice(None), *inner)] = array
    return framed


def max_pool(array: Array, how: Windows) -> tuple[Array, Array]:
    """The maximum of each window and its place, counted over the last dims of the input; the last NaN wins."""
    kind, array = array.dtype, array.astype(np.float32) if array.dtype.itemsize == 2 else array
    out = output_sizes(array.shape[2:], how)
    framed = _framed(array, how, out, _lowest(array))
    first, *others = itertools.product(*map(range, how.kernel))
    grids = _grids(array.shape[2:], out, how)
    values = framed[_places_of(first, out, how)].copy()
    places = np.empty(values.shape, np.int64)
    places[...] = grids[0]
    with_nan = array.dtype.kind == "f" and array.size and np.isnan(_most(array, None))
    for at, grid in zip(others, grids[1:], strict=True):
        found = framed[_places_of(at, out, how)]
        better = np.greater(found, values)
        if with_nan:
            better |= np.isnan(found)
        np.maximum(found, values, out=values)
        places = np.where(better, grid, places)
    return values.astype(kind, copy=False), places


_most: Any = np.maximum.reduce


def _grids(sizes: Ints, out: Ints, how: Windows) -> Array:
    """For each position inside a window, where it is in the input for every window: shape (positions, *out).

    A window that begins before the input begins with its first element inside.
    """
    total: Any = 0
    for axis, (n, kernel, step) in enumerate(zip(out, how.kernel, how.dilation, strict=True)):
        starts = np.arange(n) * how.stride[axis] - how.padding[axis]
        at = starts + np.arange(0, kernel * step, step)[:, None]
        if how.padding[axis]:
            at = np.where(at < 0, at % step, at)
        total = np.add.outer(total * sizes[axis], at) if axis else at
    order = (*range(0, total.ndim, 2), *range(1, total.ndim, 2))
    return total.transpose(order).reshape(-1, *out)  # type: ignore[no-any-return]


def scatter(grad: Array, places: Array, sizes: Ints) -> Array:
    """Each gradient added at its place: zeros elsewhere."""
    planes = math.prod(grad.shape[:2])
    total = math.prod(sizes)
    wide = grad.astype(np.float32) if grad.dtype.itemsize == 2 else grad
    result = np.zeros(planes * total, wide.dtype)
    if grad.size:
        base = (np.arange(planes) * total)[:, None]
        np.add.at(result, (places.reshape((planes, -1)) + base).reshape(-1), wide.reshape(-1))
    return result.reshape((*grad.shape[:2], *sizes)).astype(grad.dtype, copy=False)


def gather(array: Array, places: Array) -> Array:
    """The values at the places; the inverse of ``scatter``."""
    flat, wanted = (each.reshape((*each.shape[:2], math.prod(each.shape[2:]))) for each in (array, places))
    picked = np.take_along_axis(flat, wanted, -1)
    return picked.reshape(places.shape)


def _divisors(sizes: Ints, out: Ints, how: Windows, include_pad: bool) -> Array:
    """How many elements each window counts."""
    if not how.ceil_mode and not any(how.padding):
        return np.asarray(math.prod(how.kernel))
    count: Any = np.ones((1,) * len(out), np.int64)
    for axis, (size, n) in enumerate(zip(sizes, out, strict=True)):
        start = np.arange(n) * how.stride[axis] - how.padding[axis]
        end = np.minimum(start + how.kernel[axis], size + how.padding[axis])
        if not include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, size)
        shape = [1] * len(out)
        shape[axis] = n
        count = count * (end - start).reshape(shape)
    return np.asarray(count)


def _places_of(at: Ints, out: Ints, how: Windows) -> tuple[slice, ...]:
    """The elements at this position inside each window of a framed array."""
    steps = zip(at, out, how.stride, how.dilation, strict=True)
    return (slice(None), slice(None), *(slice(k * d, k * d + (n - 1) * s + 1, s) for k, n, s, d in steps))


def average(array: Array, how: Windows, include_pad: bool, divisor: int | None) -> Array:
    """The average of each window."""
    wide = array.astype(np.float32) if array.dtype.itemsize == 2 else array
    out = output_sizes(array.shape[2:], how)
    framed = _framed(wide, how, out, 0)
    total = np.zeros((*array.shape[:2], *out), wide.dtype)
    for at in itertools.product(*map(range, how.kernel)):
        total += framed[_places_of(at, out, how)]
    by: Any = divisor or _divisors(array.shape[2:], out, how, include_pad).astype(wide.dtype)
    result = np.trunc(total / by) if array.dtype.kind in "iu" else total / by
    return np.asarray(result).astype(array.dtype, copy=False)


def average_backward(grad: Array, sizes: Ints, how: Windows, include_pad: bool, divisor: int | None) -> Array:
    """The gradient of ``average``: each element's share of its windows' gradients."""
    wide = grad.astype(np.float32) if grad.dtype.itemsize == 2 else grad
    out = grad.shape[2:]
    shares = wide / (divisor or _divisors(sizes, out, how, include_pad).astype(wide.dtype))
    framed = _framed(np.zeros((*grad.shape[:2], *sizes), wide.dtype), how, out, 0)
    for at in itertools.product(*map(range, how.kernel)):
        framed[_places_of(at, out, how)] += shares
    inner = tuple(slice(p, p + s) for p, s in zip(how.padding, sizes, strict=True))
    return framed[(slice(None), slice(None), *inner)].astype(grad.dtype, copy=False)


def bins(size: int, out: int) -> list[tuple[int, int]]:
    """Where the windows of adaptive pooling begin and end."""
    return [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def averaging(size: int, out: int, kind: Any) -> Array:
    """The matrix (out, size) that averages a dim adaptively."""
    matrix = np.zeros((out, size), kind)
    for row, (start, end) in enumerate(bins(size, out)):
        matrix[row, start:end] = 1 / (end - start)
    return matrix


def along(array: Array, matrices: Sequence[Array]) -> Array:
    """Multiply the last dims by one matrix each."""
    kind, result = array.dtype, array.astype(matrices[0].dtype, copy=False)
    first = array.ndim - len(matrices)
    whole = np.isfinite(result).all()
    for axis, matrix in enumerate(matrices, first):
        rows = np.moveaxis(result, axis, 0)
        product = np.tensordot(matrix, rows, (1, 0)) if whole else _windows(matrix, rows)
        result = np.moveaxis(product, 0, axis)
    return result.astype(kind, copy=False)


def _windows(matrix: Array, rows: Array) -> Array:
    """``matrix @ rows`` that leaves out the zeros of the matrix: NaN and infinities stay in their windows."""
    product = np.zeros((matrix.shape[0], *rows.shape[1:]), rows.dtype)
    for place, weights in enumerate(matrix):
        used = np.flatnonzero(weights)
        product[place] = np.tensordot(weights[used], rows[used], (0, 0))
    return product


def adaptive_max(array: Array, out: Ints) -> tuple[Array, Array]:
    """The maximum of each adaptive window and its place."""
    sizes = array.shape[2:]
    lead = array.shape[:2]
    values, places = np.empty((*lead, *out), array.dtype), np.empty((*lead, *out), np.int64)
    if not array.size:
        return values, places
    numbers = np.arange(math.prod(sizes)).reshape(sizes)
    starts = [bins(size, n) for size, n in zip(sizes, out, strict=True)]
    for at in itertools.product(*map(range, out)):
        window = tuple(slice(*starts[axis][i]) for axis, i in enumerate(at))
        flat = array[(slice(None), slice(None), *window)].reshape((*lead, -1))
        chosen = (flat.astype(np.float32) if flat.dtype.itemsize == 2 else flat).argmax(-1)
        values[(slice(None), slice(None), *at)] = np.take_along_axis(flat, chosen[..., None], -1)[..., 0]  # type: ignore[index]
        places[(slice(None), slice(None), *at)] = numbers[window].reshape(-1)[chosen]  # type: ignore[index]
    return values, places
