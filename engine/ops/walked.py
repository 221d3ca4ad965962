"""The order in which PyTorch's CPU kernels come to the entries of an index.

An index is checked when its turn comes: of several wrong ones the first on the way is named, and what stood before it
has been written by then. An op that computes its result apart says so by :func:`halfway`; who writes that result into
a tensor of the script keeps what was written (:func:`stridescope.engine.dispatch.halfway.keep_written`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.layout import iterator_order
from stridescope.engine.storage import Array

Ints = tuple[int, ...]


def walk(shape: Ints, strides: Sequence[Ints]) -> Array:
    """The row-major positions of all elements, in the order in which TensorIterator visits these operands."""
    order = iterator_order([shape], strides)
    return np.arange(math.prod(shape)).reshape(shape).transpose(order[::-1]).reshape(-1)


def walk_along(shape: Ints, dim: int, strides: Sequence[Ints]) -> Array:
    """The same for the kernels of gather and scatter, which go along ``dim`` themselves.

    Along the last dim they do so for each of the other elements. Along another one they take a run of the innermost
    dims together, and go through the run for each step along ``dim``.
    """
    sizes = tuple(1 if d == dim else n for d, n in enumerate(shape))
    steps = [tuple(0 if d == dim else s for d, s in enumerate(own)) for own in strides]
    order = [d for d in iterator_order([sizes], steps) if d != dim]
    places = np.arange(math.prod(shape)).reshape(shape).transpose([*order[::-1], dim])
    run = _run_length([sizes[d] for d in order], [[own[d] for d in order] for own in steps])
    if dim == len(shape) - 1:
        return places.reshape(-1)
    return places.reshape(-1, run, shape[dim]).swapaxes(1, 2).reshape(-1)


def _run_length(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> int:
    """How many elements TensorIterator goes through at once: the innermost dim and all that continue it."""
    run, wide = 1, [d for d, n in enumerate(sizes) if n > 1]
    for place, d in enumerate(wide):
        first = wide[0]
        if place and any(own[d] != own[first] * run for own in strides):
            break
        run *= sizes[d]
    return run


def first_wrong(
    index: Array, low: int, size: int, walked: Callable[[], Array] | None = None
) -> tuple[Array, int] | None:
    """The positions that are visited before the first entry outside ``low`` to ``size``, and that entry.

    ``walked`` gives their order, by default row-major; None when no entry is wrong.
    """
    flat = index.reshape(-1)
    wrong = (flat < low) | (flat >= size)
    if not wrong.any():
        return None
    order = np.arange(flat.size) if walked is None else walked()
    at = int(wrong[order].argmax())
    return order[:at], int(flat[order[at]])


def some(place: tuple[Any, ...], values: Any, shape: Ints, chosen: Array) -> tuple[tuple[Array, ...], Any]:
    """The chosen ones, by row-major position, of a place that spans ``shape`` and of the values to write there."""
    kept = tuple(np.broadcast_to(part, shape).reshape(-1)[chosen] for part in place)
    return kept, np.broadcast_to(values, shape).reshape(-1)[chosen] if np.ndim(values) else values
