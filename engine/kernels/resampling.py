"""Resampling along single dims: which elements an output position mixes, and with what weights.

A dim's :class:`Mix` holds, for every output position, some input positions and their weights; an image is resampled
one dim at a time. The source positions are computed as PyTorch computes them (``UpSample.h``), in float32 for
float32 images.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Mix(NamedTuple):
    """Input positions (out, taps) and weights of the same shape; weights None when one tap is copied."""

    places: Array
    weights: Array | None


def _scale(size: int, out: int, given: float | None, align: bool, kind: Any) -> Any:
    if align:
        return kind(size - 1) / kind(out - 1) if out > 1 else kind(0)
    return kind(1 / given) if given is not None and given > 0 else kind(size) / kind(out)


def _positions(size: int, out: int, given: float | None, align: bool, kind: Any) -> Array:
    scale = _scale(size, out, given, align, kind)
    steps = np.arange(out).astype(kind)
    return np.asarray(scale * steps if align else scale * (steps + kind(0.5)) - kind(0.5))


def nearest(size: int, out: int, given: float | None, exact: bool) -> Mix:
    """The one element below (or nearest to) each position."""
    scale = _scale(size, out, given, False, np.float32)
    steps = np.arange(out).astype(np.float32)
    at = np.floor((steps + np.float32(0.5)) * scale if exact else steps * scale).astype(np.int64)
    return Mix(np.minimum(at, size - 1)[:, None], None)


def linear(size: int, out: int, given: float | None, align: bool, kind: Any) -> Mix:
    """The two neighbours of each position."""
    at = np.maximum(_positions(size, out, given, align, kind), 0)
    low = np.minimum(at.astype(np.int64), size - 1)
    high = low + (low < size - 1)
    share = np.clip(at - low, 0, 1).astype(kind)
    return Mix(np.stack((low, high), 1), np.stack((1 - share, share), 1))


def _cubic(t: Array, a: float) -> Array:
    """The weights of four neighbours at a fraction ``t`` between the middle two (Keys' convolution)."""

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return np.stack((far(t + 1), near(t), near(1 - t), far(2 - t)), 1)


def cubic(size: int, out: int, given: float | None, align: bool, kind: Any) -> Mix:
    """The four neighbours of each position."""
    at = _positions(size, out, given, align, kind)
    low = np.floor(at)
    places = np.clip(low.astype(np.int64)[:, None] + np.arange(-1, 3), 0, size - 1)
    return Mix(places, _cubic(at - low, -0.75).astype(kind))


def smoothed(size: int, out: int, given: float | None, align: bool, cubical: bool, kind: Any) -> Mix:
    """All elements under a filter that widens when an image shrinks (antialiasing)."""
    scale = float(_scale(size, out, given, align, np.float64))
    reach = (2 if cubical else 1) * max(scale, 1)
    squeeze = 1 / scale if scale >= 1 else 1
    center = scale * (np.arange(out) + 0.5)
    start = np.maximum((center - reach + 0.5).astype(np.int64), 0)
    end = np.minimum((center + reach + 0.5).astype(np.int64), size)
    places = start[:, None] + np.arange(max(int((end - start).max()), 1))
    x = np.abs((places - center[:, None] + 0.5) * squeeze)
    weights = _filter(x, cubical) * (places < end[:, None])
    return Mix(np.minimum(places, size - 1), (weights / weights.sum(1, keepdims=True)).astype(kind))


def _filter(x: Array, cubical: bool) -> Array:
    if not cubical:
        return np.maximum(1 - x, 0)  # type: ignore[no-any-return]
    a = -0.5
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def mixed(array: Array, mixes: Sequence[Mix]) -> Array:
    """Resample the last dims."""
    first = array.ndim - len(mixes)
    for axis, mix in enumerate(mixes, first):
        if mix.weights is None:
            array = np.take(array, mix.places[:, 0], axis)
            continue
        shape = [1] * array.ndim
        shape[axis] = len(mix.places)
        total: Any = 0
        for tap in range(mix.places.shape[1]):
            total = total + np.take(array, mix.places[:, tap], axis) * mix.weights[:, tap].reshape(shape)
        array = total
    return array


def spread(grad: Array, mixes: Sequence[Mix], sizes: Sequence[int]) -> Array:
    """The transpose of ``mixed``: every output's gradient goes back to the elements that it mixed."""
    first = grad.ndim - len(mixes)
    for axis, (mix, size) in enumerate(zip(mixes, sizes, strict=True), first):
        matrix = np.zeros((size, len(mix.places)), grad.dtype)
        rows = np.broadcast_to(np.arange(len(mix.places))[:, None], mix.places.shape)
        np.add.at(matrix, (mix.places, rows), 1 if mix.weights is None else mix.weights)
        grad = np.moveaxis(np.tensordot(matrix, grad, (1, axis)), 0, axis)
    return grad
