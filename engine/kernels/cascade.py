"""Sums in the order in which PyTorch's CPU kernel adds, so that they round to the same bits.

PyTorch keeps four levels of partial sums: a run of 16 or more terms is added one by one, its sum goes to the next
level, and so on. Contiguous runs are added in lanes of a vector register (of AVX2) and in four rows at a time. The
error grows with the logarithm of the count, and a printed loss is PyTorch's to the last digit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import numpy as np

Array = np.ndarray[Any, Any]
ROWS, LEVELS = 4, 4
BLOCK = 128
SHORTEST = 16  # terms that one level adds up
WIDE = 32  # columns from which on NumPy adds short runs of rows well
# How many elements one vector holds, by item size; complex numbers count as a whole.
LANES = {2: 16, 4: 8, 8: 4, 16: 2}


# Beyond this size PyTorch shares the work among threads, and the bits depend on their number.
LARGEST = 32768


def cascade_sum(array: Array, over: tuple[int, ...], keepdims: bool, lanes: int) -> Array:
    """The sum over some dims; ``lanes`` is the vector length of the dtype that the elements were loaded from."""
    if array.size > LARGEST or not array.size or not over:
        return _large(array, over, keepdims)
    shape, alone = _outcome(array.shape, over, keepdims)
    if alone and array.flags.c_contiguous:
        total = np.asarray(flat_sum(array.reshape(-1), lanes))
    else:
        total = _summed(array, over, lanes)
    return total if total.shape == shape else total.reshape(shape)


@functools.lru_cache(4096)
def _outcome(shape: tuple[int, ...], over: tuple[int, ...], keepdims: bool) -> tuple[tuple[int, ...], bool]:
    """The shape of the sums over some dims, and whether there is one sum only."""
    kept = [1 if d in over else n for d, n in enumerate(shape) if keepdims or d not in over]
    return tuple(kept), all(n == 1 for n in kept)


_add = cast("Callable[..., Array]", np.add.reduce)


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
    rest = row[count * lanes :]
    if count == 1:
        return np.add.accumulate(np.concatenate((rest, row[:lanes])) if rest.size else row)[-1]
    vectors = row[: count * lanes].reshape(count, lanes)
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


# From here on the terms of a sum lie in columns, so that NumPy adds whole rows of many sums at a time.


def _inner(rows: Array, lanes: int) -> Array:
    """The sums along the last dim."""
    kept, size = rows.shape[:-1], rows.shape[-1]
    terms = np.ascontiguousarray(rows.reshape(-1, size).T)
    if size < lanes or rows.strides[-1] != rows.itemsize:
        return _row_sum(terms).reshape(kept)
    count = size // lanes
    vectors = terms[: count * lanes].reshape(count, -1)
    if lanes == 16:  # half precision: two vectors of float32, added when they are loaded
        half = vectors.shape[1] // 2
        vectors = vectors[:, :half] + vectors[:, half:]
    partial = _row_sum(vectors).reshape(-1, terms.shape[1])
    rest = terms[count * lanes :]
    return _in_order(np.concatenate((rest, partial)) if len(rest) else partial).reshape(kept)


def _columns(array: Array, lanes: int) -> Array:
    """The sums along the last dim but one."""
    columns = array.shape[-1]
    fast = array.strides[-1] == array.itemsize and columns >= lanes
    width = ROWS * (min(lanes, 8) if fast else 1)
    whole = columns // width * width
    parts = [_of_columns(array[..., :whole], _levels)] if whole else []
    if whole < columns:
        parts.append(_of_columns(array[..., whole:], _row_sum))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, -1)


def _of_columns(array: Array, add: Callable[[Array], Array]) -> Array:
    """The sums along the last dim but one by ``add``, which gets the terms of each sum as a column."""
    if array.ndim == 2:
        return add(array)
    terms = np.moveaxis(array, -2, 0)
    return add(terms.reshape(len(terms), -1)).reshape(terms.shape[1:])


def _row_sum(terms: Array) -> Array:
    """The sum of each column, four rows side by side."""
    size = len(terms)
    count = size // ROWS
    if not count:
        return _in_order(terms)
    whole = terms[: count * ROWS].reshape(count, -1)
    partial = (_in_order(whole) if count <= SHORTEST else _levels(whole)).reshape(ROWS, -1)
    if size % ROWS:
        partial = np.concatenate((partial[:1], terms[count * ROWS :], partial[1:]))
    return _in_order(partial)


def _levels(terms: Array) -> Array:
    """The sum of each column, by levels of partial sums."""
    size = len(terms)
    power = max(SHORTEST.bit_length() - 1, (size - 1).bit_length() // LEVELS)
    step = 1 << power
    if size <= step:
        return _in_order(terms)
    sums, parts = terms, []
    for _ in range(LEVELS - 1):
        groups = len(sums) >> power
        if len(sums) % step:
            parts.append(_in_order(sums[groups * step :]))
        if not groups:
            break
        sums = _grouped(sums[: groups * step], step)
    else:
        parts.append(_in_order(sums))
    return _in_order(np.array(parts)) if len(parts) > 1 else parts[0]


def _grouped(terms: Array, step: int) -> Array:
    """The sums of each ``step`` neighbours in a column."""
    width = terms.shape[1]
    if len(terms) == step:
        return _in_order(terms)[None]
    groups = terms.reshape(-1, step, width)
    if width < WIDE:  # many short runs are slow to add
        return _in_order(groups.swapaxes(0, 1).reshape(step, -1)).reshape(-1, width)
    return _add(groups, 1)


def _in_order(terms: Array) -> Array:
    """The sum of each column, term by term; NumPy does that only where there are several columns."""
    if len(terms) == 1:
        return terms[0]  # type: ignore[no-any-return]
    if len(terms) == 2:
        return terms[0] + terms[1]  # type: ignore[no-any-return]
    if terms.shape[1] == 1:
        return np.asarray(np.add.accumulate(terms)[-1])
    return _add(terms if terms.flags.c_contiguous else np.ascontiguousarray(terms))
