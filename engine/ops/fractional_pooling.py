"""Fractional max pooling (Graham 2014): maxima of windows whose places follow a random sequence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import int64
from stridescope.engine.ops.pooling import define_spread
from stridescope.engine.ops.pooling_layout import batched, unbatched
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh

AXES = {2: ("height", "width"), 3: ("time", "height", "width")}
SAMPLE_OF = {2: (1, 0), 3: (0, 1, 2)}  # which random number places the windows along each axis
Ints = Sequence[int]


def _check(self: Tensor, kernel: Ints, out: Ints, samples: Tensor, dims: int) -> None:
    shape = self.shape
    label = f"fractional_max_pool{dims}d" + ("_out" if dims == 3 else "")
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"{label}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(shape)}")
    for place in range(len(shape) - dims - 1, len(shape)):
        if place and not shape[place]:
            raise RuntimeError(
                f"{label}(): Expected input to have non-zero size for non-batch dimensions, but got{list(shape)} with "
                f"dimension {place} being empty."
            )
    for name, size, window, count in zip(AXES[dims], shape[-dims:], kernel, out, strict=True):
        if count + window - 1 > size:
            raise RuntimeError(f"{label}(): pool {name} {window} too large relative to input {name} {size}")
    if samples.dtype is not self.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.dim() != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.dim()}")
    if samples.shape[0] < (1 if len(shape) == dims + 1 else shape[0]):
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != shape[-dims - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != dims:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims}; got {samples.shape[2]}.")
    if not self.dtype.is_floating_point:
        raise not_implemented(f"{label}_out_frame", self.dtype)


def _starts(samples: Array, size: int, count: int, window: int) -> Array:
    """Where the windows of each plane begin: [batch, channel, count]."""
    starts = np.full((*samples.shape, count), size - window, np.int64)
    if count > 1:
        alpha = samples.dtype.type((size - window) / (count - 1))
        steps = np.arange(count - 1, dtype=samples.dtype) + samples[..., None]
        starts[..., :-1] = (steps * alpha).astype(np.int64) - (samples * alpha).astype(np.int64)[..., None]
    return starts


def _windows(array: Array, kernel: Ints, out: Ints, samples: Array, dims: int) -> Array:
    """The flat places of all windows in their planes: [batch, channel, *out, elements of a window]."""
    flat: Any = np.zeros((1,) * (2 + 2 * dims), np.int64)
    for axis in range(dims):
        size = array.shape[2 + axis]
        starts = _starts(samples[..., SAMPLE_OF[dims][axis]], size, out[axis], kernel[axis])
        places = starts[..., None] + np.arange(kernel[axis])
        shape = [*places.shape[:2], *(1,) * (2 * dims)]
        shape[2 + axis], shape[2 + dims + axis] = out[axis], kernel[axis]
        flat = flat * size + places.reshape(shape)
    return np.asarray(flat.reshape(*flat.shape[: 2 + dims], math.prod(kernel)))


def _run(dims: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def run(self: Tensor, kernel_size: Ints, output_size: Ints, random_samples: Tensor) -> tuple[Tensor, Tensor]:
        kernel, out = _each(kernel_size, dims), _each(output_size, dims)
        _check(self, kernel, out, random_samples, dims)
        array = batched(resolved(self), dims)
        places = _windows(array, kernel, out, resolved(random_samples)[: array.shape[0]], dims)
        planes = array.reshape(*array.shape[:2], math.prod(array.shape[2:]))
        flat = places.reshape(*planes.shape[:2], math.prod(places.shape[2:]))
        found = np.take_along_axis(planes, flat, 2).reshape(places.shape)
        best = found.argmax(-1)[..., None]
        values, where = (np.take_along_axis(each, best, -1)[..., 0] for each in (found, places))
        return (
            fresh(dense(unbatched(values, self)), self.dtype, self.device),
            fresh(dense(unbatched(where, self)), int64, self.device),
        )

    return run


def _each(value: Ints, dims: int) -> tuple[int, ...]:
    return tuple(value) * dims if len(value) == 1 else tuple(value)


def _define(dims: int) -> None:
    scatter = define_spread(f"fractional_max_pool{dims}d_backward", dims, lambda self, dims: False).call

    def grad_self(grad: Tensor, self: Tensor, kernel_size: Ints, output_size: Ints, result1: Tensor) -> Tensor:
        return scatter(grad, self, result1)  # type: ignore[no-any-return]

    size = f"int[{dims}]"
    define(
        f"fractional_max_pool{dims}d(Tensor self, {size} kernel_size, {size} output_size, Tensor random_samples) -> "
        "(Tensor, Tensor)",
        doc="The maximum of each window, and its place; the windows' places follow the random samples.",
        run=_run(dims),
        grads={"self": grad_self},
        node=f"FractionalMaxPool{dims}DBackward0",
        differentiable_outputs=(0,),
        method=False,
        namespace="torch._C._nn",
    )


for _dims in (2, 3):
    _define(_dims)
