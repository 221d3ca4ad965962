"""Sampling arrays at fractional places: neighbours, weights and their slopes, for images and volumes."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2


class Taps(NamedTuple):
    """For one dim: element numbers (taps, batch, *out), weights of the same shape, and the weights' slopes."""

    places: list[Array]
    weights: list[Array]
    slopes: list[Array]


def _unnormalised(at: Array, size: int, align: bool) -> tuple[Array, float]:
    """A place between -1 and 1 as an element number, and how fast it moves."""
    kind = at.dtype.type
    if align:
        return (at + 1) / 2 * kind(size - 1), (size - 1) / 2
    return ((at + 1) * kind(size) - 1) / 2, size / 2


def _reflected(at: Array, low2: int, high2: int) -> tuple[Array, Array]:
    if low2 == high2:
        return np.zeros_like(at), np.zeros_like(at)
    low, span = low2 / 2, (high2 - low2) / 2
    moved = at - low
    sign = np.where(moved < 0, -1.0, 1.0)
    moved = np.abs(moved)
    extra = np.fmod(moved, span)
    flips = np.floor(moved / span).astype(np.int64)
    even = flips % 2 == 0
    return np.where(even, extra + low, span - extra + low).astype(at.dtype), sign * np.where(even, 1, -1)


def _padded(at: Array, size: int, padding: int, align: bool) -> tuple[Array, Array]:
    """The place after padding's rule, and its slope."""
    slope: Array = np.ones_like(at)
    if padding == REFLECTION:
        at, slope = _reflected(at, 0, 2 * (size - 1)) if align else _reflected(at, -1, 2 * size - 1)
    if padding != ZEROS:
        inside = (at > 0) & (at < size - 1)
        slope = slope * inside
        at = np.clip(at, 0, size - 1)
    return at, slope


def _cubic(t: Any) -> tuple[list[Any], list[Any]]:
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    def near_slope(x: Any) -> Any:
        return (3 * (a + 2) * x - 2 * (a + 3)) * x

    def far_slope(x: Any) -> Any:
        return (3 * a * x - 10 * a) * x + 8 * a

    weights = [far(t + 1), near(t), near(1 - t), far(2 - t)]
    return weights, [far_slope(t + 1), near_slope(t), -near_slope(1 - t), -far_slope(2 - t)]


def weights_of(share: Any, mode: int) -> tuple[list[Any], list[Any]]:
    """The weights of the neighbours of a place, and how they change with it.

    ``share`` is how far behind the element before it the place lies: an array, or a Tensor to differentiate by.
    """
    if mode == BICUBIC:
        return _cubic(share)
    one = share * 0 + 1
    return ([one], [share * 0]) if mode == NEAREST else ([1 - share, share], [-one, one])


class Neighbours(NamedTuple):
    """For one dim: the neighbours' element numbers (each (batch, *out)), which of them exist, the place's ``share``
    (see ``weights_of``), and how fast that moves with the grid."""

    places: list[Array]
    inside: list[Array]
    share: Array
    step: Array


def neighbours(at: Array, size: int, mode: int, padding: int, align: bool) -> Neighbours:
    """The neighbours of places between -1 and 1 in a dim of this size."""
    at, speed = _unnormalised(at, size, align)
    if mode == BICUBIC:
        low = np.floor(at)
        numbers = [_padded(low + k, size, padding, align)[0].astype(np.int64) for k in range(-1, 3)]
        return _existing(numbers, at - low, np.full_like(at, speed), size)
    at, slope = _padded(at, size, padding, align)
    at = np.where(np.isfinite(at), at, -100).astype(at.dtype)
    if mode == NEAREST:
        return _existing([np.rint(at).astype(np.int64)], np.zeros_like(at), np.zeros_like(at), size)
    low = np.floor(at)
    first = low.astype(np.int64)
    return _existing([first, first + 1], at - low, slope * speed, size)


def _existing(numbers: list[Array], share: Array, step: Array, size: int) -> Neighbours:
    """Places outside count nothing."""
    inside = [(p >= 0) & (p < size) for p in numbers]
    return Neighbours([np.where(i, p, 0) for p, i in zip(numbers, inside, strict=True)], inside, share, step)


def _taps(at: Array, size: int, mode: int, padding: int, align: bool) -> Taps:
    near = neighbours(at, size, mode, padding, align)
    weights, slopes = weights_of(near.share, mode)
    return Taps(near.places, [w * i for w, i in zip(weights, near.inside, strict=True)],
                [s * near.step * i for s, i in zip(slopes, near.inside, strict=True)])  # fmt: skip


def _all_taps(array: Array, grid: Array, mode: int, padding: int, align: bool) -> list[Taps]:
    """One Taps for each spatial dim of the array; the grid lists them last dim first."""
    dims = array.ndim - 2
    return [_taps(grid[..., dims - 1 - axis], array.shape[2 + axis], mode, padding, align) for axis in range(dims)]


def _picked(array: Array, places: tuple[Array, ...]) -> Array:
    """(batch, channels, *out): the elements at these places."""
    batch = np.arange(array.shape[0]).reshape((-1, *(1,) * (places[0].ndim - 1)))
    return np.moveaxis(array[(batch, slice(None), *places)], -1, 1)  # type: ignore[arg-type]


def sample(array: Array, grid: Array, mode: int, padding: int, align: bool) -> Array:
    """The elements at the places of the grid."""
    taps = _all_taps(array, grid, mode, padding, align)
    total = np.zeros((array.shape[0], array.shape[1], *grid.shape[1:-1]), array.dtype)
    for chosen in itertools.product(*(range(len(t.places)) for t in taps)):
        places = tuple(t.places[k] for t, k in zip(taps, chosen, strict=True))
        weight = np.prod([t.weights[k] for t, k in zip(taps, chosen, strict=True)], axis=0)
        total += (_picked(array, places) * weight[:, None]).astype(total.dtype)
    return total


def sample_backward(
    grad: Array, array: Array, grid: Array, mode: int, padding: int, align: bool
) -> tuple[Array, Array]:
    """The gradients of the array and of the grid."""
    taps = _all_taps(array, grid, mode, padding, align)
    dims = len(taps)
    by_array, by_grid = np.zeros_like(array), np.zeros_like(grid)
    batch = np.arange(array.shape[0]).reshape((-1, *(1,) * dims))
    moved = np.moveaxis(by_array, 1, -1)
    for chosen in itertools.product(*(range(len(t.places)) for t in taps)):
        places = tuple(t.places[k] for t, k in zip(taps, chosen, strict=True))
        weights = [t.weights[k] for t, k in zip(taps, chosen, strict=True)]
        whole = np.prod(weights, axis=0)
        np.add.at(moved, (batch, *places), np.moveaxis(grad * whole[:, None], 1, -1))
        values = (_picked(array, places) * grad).sum(1)
        for axis in range(dims):
            others = np.prod([w for i, w in enumerate(weights) if i != axis], axis=0)
            by_grid[..., dims - 1 - axis] += values * taps[axis].slopes[chosen[axis]] * others
    return by_array, by_grid
