"""Sums in the order in which PyTorch's CPU kernel adds, so that they round to the same bits.

PyTorch keeps four levels of partial sums: a run of 16 or more terms is added one by one, its sum goes to the next
level, and so on. Contiguous runs are added in lanes of a vector register (of AVX2) and in four rows at a time. The
error grows with the logarithm of the count, and a printed loss is PyTorch's to the last digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
ROWS, LEVELS = 4, 4
BLOCK = 128
# How many elements one vector holds, by item size; complex numbers count as a whole.
LANES = {2: 16, 4: 8, 8: 4, 16: 2}


# Beyond this size PyTorch shares the work among threads, and the bits depend on their number.
LARGEST = 32768


def cascade_sum(array: Array, over: tuple[int, ...], keepdims: bool, lanes: int) -> Array:
    """The sum over some dims; ``lanes`` is the vector length of the dtype that the elements were loaded from."""
    if array.size > LARGEST or not array.size or not over:
        return _large(array, over, keepdims)
    if array.flags.c_contiguous and all(d in over or n == 1 for d, n in enumerate(array.shape)):
        total = np.asarray(flat_sum(array.reshape(-1), lanes))
    else:
        total = _summed(array, over, lanes)
    if keepdims:
        return total.reshape([1 if d in over else n for d, n in enumerate(array.shape)])
    return total.reshape([n for d, n in enumerate(array.shape) if d not in over])


_add: Any = np.add.reduce


def _large(array: Array, over: tuple[int, ...], keepdims: bool) -> Array:
    """NumPy's sum, which is pairwise along the innermost dim only; other long dims are halved until they are short."""
    inner = min(range(array.ndim), key=lambda d: abs(array.strides[d]) if array.shape[d] > 1 else 1 << 62, default=0)
    if not over or not array.size or inner in over:
        return np.asarray(_add(array, over, keepdims=keepdims))
    return _halved(array, over, max(over, key=lambda d: array.shape[d]), keepdims)


def _halved(array: Array, over: tuple[int, ...], dim: int, keepdims: bool) -> Array:
    size = array.shape[dim]
    if size <= BLOCK:
        return np.asarray(_add(array, over, keepdims=keepdims))
    first, half = (slice(None),) * dim, size // 2
    low = _halved(array[(*first, slice(None, half))], over, dim, keepdims)
    return np.asarray(low + _halved(array[(*first, slice(half, None))], over, dim, keepdims))


def flat_sum(row: Array, lanes: int) -> Any:
    """The sum of one contiguous run."""
    size = row.size
    if size < lanes:
        return _add(row if size <= ROWS else row[_SHORT[size]]) if size < 8 else _inner(row[None], lanes)[0]
    if lanes == 16 or size >= ROWS * 16 * lanes:
        return _inner(row[None], lanes)[0]
    count = size // lanes
    vectors, rest = row[: count * lanes].reshape(count, lanes), row[count * lanes :]
    groups = count // ROWS
    if groups:
        four = _add(vectors[: groups * ROWS].reshape(groups, ROWS * lanes), 0).reshape(ROWS, lanes)
        tail = vectors[groups * ROWS :]
        vectors = np.concatenate((four[:1], tail, four[1:])) if len(tail) else four
    partial = _add(vectors, 0)
    return np.add.accumulate(np.concatenate((rest, partial)) if rest.size else partial)[-1]


# The order in which four rows side by side add up fewer than eight terms.
_SHORT = {size: [0, *range(ROWS, size), *range(1, ROWS)] for size in range(ROWS + 1, 8)}


def _summed(array: Array, over: tuple[int, ...], lanes: int) -> Array:
    """The sums, the kept dims in their order."""
    if array.ndim == 2 and array.flags.c_contiguous and 1 not in array.shape:
        return _inner(array, lanes) if over == (1,) else _columns(array, lanes)
    order = sorted((d for d in range(array.ndim) if array.shape[d] > 1), key=lambda d: -abs(array.strides[d]))
    if not any(d in over for d in order):
        return array + array.dtype.type(0)  # type: ignore[no-any-return]
    view, marks = _merged(array.transpose([*_ones(array), *order]), [d in over for d in order])
    kept = [d for d in order if d not in over]
    return _reduce(view, marks, lanes).reshape([array.shape[d] for d in kept]).transpose(_back(kept))


def _ones(array: Array) -> list[int]:
    return [d for d in range(array.ndim) if array.shape[d] == 1]


def _back(kept: list[int]) -> list[int]:
    """The order that brings kept dims, sorted by stride, back to their own order."""
    return [kept.index(d) for d in sorted(kept)]


def _merged(array: Array, marks: list[bool]) -> tuple[Array, list[bool]]:
    """Dims next to each other in memory that are both reduced, or both kept, as one."""
    wide = [(n, s) for n, s in zip(array.shape, array.strides, strict=True) if n > 1]
    shape: list[int] = []
    steps: list[int] = []
    kinds: list[bool] = []
    for (size, stride), mark in zip(wide, marks, strict=True):
        if kinds and kinds[-1] == mark and steps[-1] == size * stride:
            shape[-1], steps[-1] = shape[-1] * size, stride
        else:
            shape.append(size)
            steps.append(stride)
            kinds.append(mark)
    return np.lib.stride_tricks.as_strided(array, shape, steps, writeable=False), kinds


def _reduce(view: Array, marks: list[bool], lanes: int) -> Array:
    """The two innermost dims by the kernel, the outer ones around it."""
    outer, inner = marks[:-2], marks[-2:]
    if inner == [True]:
        result = _inner(view[None], lanes)[0]
    elif inner == [True, True]:  # two reduced dims with a gap in memory between them
        result = _inner(view, lanes)
        result = _one_by_one(result, result.ndim - 1)
    elif inner[-1]:
        result = _inner(view, lanes)
    elif inner[0]:
        result = _columns(view, lanes)
    else:
        result = view
    for position in range(len(outer) - 1, -1, -1):
        if outer[position]:
            result = _one_by_one(result, position)
    return result  # type: ignore[no-any-return]


def _one_by_one(array: Array, axis: int) -> Array:
    """The sum of slices in their order."""
    total = np.take(array, 0, axis)
    for k in range(1, array.shape[axis]):
        total = total + np.take(array, k, axis)
    return total  # type: ignore[no-any-return]


def _inner(rows: Array, lanes: int) -> Array:
    """The sums along the last dim."""
    size = rows.shape[-1]
    if rows.strides[-1] != rows.itemsize or size < lanes:
        return _row_sum(rows[..., None])[..., 0]
    count = size // lanes
    vectors = np.ascontiguousarray(rows[..., : count * lanes]).reshape(*rows.shape[:-1], count, lanes)
    if lanes == 16:  # half precision: two vectors of float32, added when they are loaded
        vectors = vectors[..., :8] + vectors[..., 8:]
    partial = _row_sum(vectors)
    terms = np.concatenate([rows[..., count * lanes :], partial], -1) if size % lanes else partial
    return np.add.accumulate(terms, axis=-1)[..., -1]


def _columns(array: Array, lanes: int) -> Array:
    """The sums along the last dim but one."""
    columns = array.shape[-1]
    fast = array.strides[-1] == array.itemsize and columns >= lanes
    width = ROWS * (min(lanes, 8) if fast else 1)
    whole = columns // width * width
    if whole == columns:
        return _levels(array)
    if not whole:
        return _row_sum(array)
    return np.concatenate([_levels(array[..., :whole]), _row_sum(array[..., whole:])], -1)


def _row_sum(array: Array) -> Array:
    """The sums along the last dim but one, four rows side by side."""
    size, width = array.shape[-2:]
    count = size // ROWS
    if not count:
        return _in_order(array)
    head = np.ascontiguousarray(array[..., : count * ROWS, :]).reshape(*array.shape[:-2], count, ROWS * width)
    partial = _levels(head).reshape(*array.shape[:-2], ROWS, width)
    if size % ROWS == 0:
        return _in_order(partial)
    parts = [partial[..., :1, :], array[..., count * ROWS :, :], partial[..., 1:, :]]
    return _in_order(np.concatenate(parts, -2))


def _levels(array: Array) -> Array:
    """The sums along the last dim but one, by levels of partial sums."""
    size = array.shape[-2]
    power = max(4, (size - 1).bit_length() // LEVELS)
    step = 1 << power
    if size < step:
        return _in_order(array)
    blocks = size // step
    sums = _grouped(array[..., : blocks * step, :], step)
    parts = [_in_order(array[..., blocks * step :, :])] if size % step else []
    for _ in range(LEVELS - 2):
        groups, rest = divmod(sums.shape[-2], step)
        if rest:
            parts.append(_in_order(sums[..., groups * step :, :]))
        if not groups:
            break
        sums = _grouped(sums[..., : groups * step, :], step)
    else:
        parts.append(_in_order(sums))
    return _in_order(np.stack(parts, -2))


def _grouped(array: Array, step: int) -> Array:
    """The sums of each ``step`` neighbours along the last dim but one."""
    size, width = array.shape[-2:]
    return _in_order(np.ascontiguousarray(array).reshape(*array.shape[:-2], size // step, step, width))


def _in_order(array: Array) -> Array:
    """The sums along the last dim but one, term by term; NumPy does that only where the last dim is wider than one."""
    if array.shape[-1] == 1:
        return np.add.accumulate(array, axis=-2)[..., -1, :]
    if array.ndim == 3 and array.shape[1] <= ROWS:  # NumPy is slow where many short sums lie side by side
        total = array[:, 0] + array[:, 1] if array.shape[1] > 1 else array[:, 0].copy()
        for place in range(2, array.shape[1]):
            total += array[:, place]
        return np.asarray(total)
    return np.asarray(_add(array if array.flags.c_contiguous else np.ascontiguousarray(array), axis=-2))
