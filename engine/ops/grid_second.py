"""The derivative of ``grid_sampler_backward``: what curvature a sampled image has by its elements and by the grid.

With weights w of the neighbours, the two gradients paired with their cotangents (a, b) are linear in ``grad_output``:
it is multiplied by the samples of a and by the change of the image's samples along b. That product is written in Tensor
ops and differentiated by them, so that there are third derivatives, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd import api
from stridescope.engine.autograd.leaf import leaf_at
from stridescope.engine.autograd.modes import enable_grad, grad_mode
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import int64
from stridescope.engine.kernels import grid as kernels
from stridescope.engine.tensor import Tensor, fresh


def second_grads(
    grads: Sequence[Tensor | None],
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    needs: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """The gradients of ``grad_output``, ``input`` and ``grid``; None where nothing depends on one."""
    create = grad_mode.enabled
    given = (grad_output, input, grid)
    points = [_point(t, create) if need else t for t, need in zip(given, needs, strict=True)]
    wanted = [point for point, need in zip(points, needs, strict=True) if need]
    with enable_grad():
        axes = _axes(input, points[2], interpolation_mode, padding_mode, align_corners)
        moved = _moved(grads, points[1], axes, interpolation_mode)
        product = (points[0].reshape(moved.shape) * moved).sum()
        found = iter(api.grad(product, wanted, create_graph=create, allow_unused=True) if wanted else ())
    return tuple(next(found) if need else None for need in needs)


def _point(tensor: Tensor, create: bool) -> Any:
    """An alias to differentiate by: what arrives through another argument's history is that argument's."""
    return tensor.view_as(tensor) if create and tensor._requires_grad else leaf_at(tensor)


class _Axis:
    """One spatial dim: its neighbours as arrays, their weights and slopes as Tensors of (batch, 1, places)."""

    def __init__(self, near: kernels.Neighbours, at: Tensor, mode: int) -> None:
        flat = (at._array.shape[0], 1, -1)
        self.places = [p.reshape(flat) for p in near.places]
        inside, step = [_like(i.reshape(flat), at) for i in near.inside], _like(near.step.reshape(flat), at)
        there = at.reshape((at._array.shape[0], 1, math.prod(at._array.shape[1:])))
        share = _like(near.share.reshape(flat), at) + step * (there - there.detach())
        weights, slopes = kernels.weights_of(share, mode)
        self.weights = [w * i for w, i in zip(weights, inside, strict=True)]
        self.slopes = [s * step * i for s, i in zip(slopes, inside, strict=True)]


def _like(array: Any, tensor: Tensor) -> Any:
    return fresh(np.ascontiguousarray(array.astype(tensor.dtype.np)), tensor.dtype, tensor.device)


def _axes(input: Tensor, grid: Tensor, mode: int, padding: int, align: bool) -> list[_Axis]:
    """The axes of the image, first dim first; the grid lists them last dim first."""
    dims, made = input.dim() - 2, []
    for axis in range(dims):
        at = grid.select(-1, dims - 1 - axis)
        array = resolved(at)
        array = array.astype(np.float32) if array.dtype.itemsize == 2 else array
        near = kernels.neighbours(array, input.shape[2 + axis], mode, padding, align)
        made.append(_Axis(near, at, mode))
    return made


def _moved(grads: Sequence[Tensor | None], input: Tensor, axes: list[_Axis], mode: int) -> Any:
    """(batch, channels, places): the samples of the first cotangent, and the image's change along the second."""
    of_image, of_grid = grads
    along = None
    if of_grid is not None and mode != kernels.NEAREST:
        batch, size = of_grid._array.shape[0], math.prod(of_grid._array.shape[1:-1])
        along = [of_grid.select(-1, len(axes) - 1 - axis).reshape((batch, 1, size)) for axis in range(len(axes))]
    size = axes[0].places[0].shape[2]
    total: Any = input.new_zeros((input.shape[0], input.shape[1], size))
    for chosen in itertools.product(*(range(len(axis.places)) for axis in axes)):
        places = _linear([axis.places[k] for axis, k in zip(axes, chosen, strict=True)], input)
        weights = [axis.weights[k] for axis, k in zip(axes, chosen, strict=True)]
        if of_image is not None:
            total = total + _picked(of_image, places) * math.prod(weights[1:], start=weights[0])
        if along is not None:
            slopes = [axis.slopes[k] for axis, k in zip(axes, chosen, strict=True)]
            total = total + _picked(input, places) * _change(along, weights, slopes)
    return total


def _linear(places: list[Any], input: Tensor) -> Any:
    """Element numbers in the flattened image, for all channels."""
    numbers = np.zeros_like(places[0])
    for axis, place in enumerate(places):
        numbers = numbers * input.shape[2 + axis] + place
    return fresh(np.ascontiguousarray(numbers), int64, input.device).expand(-1, input.shape[1], -1)


def _picked(image: Tensor, places: Tensor) -> Any:
    batch, channels, *sizes = image._array.shape
    return image.reshape((batch, channels, math.prod(sizes))).gather(2, places)


def _change(along: list[Any], weights: list[Any], slopes: list[Any]) -> Any:
    """How one neighbour's weight changes along the second cotangent."""
    parts = []
    for axis, slope in enumerate(slopes):
        others = [w for number, w in enumerate(weights) if number != axis]
        parts.append(along[axis] * slope * math.prod(others[1:], start=others[0]))
    return sum(parts[1:], start=parts[0])
