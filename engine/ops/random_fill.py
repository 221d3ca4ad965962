"""Filling a tensor with random numbers, in the order in which PyTorch's kernels walk its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.device import META
from stridescope.engine.devices.cuda_generator import CudaGenerator
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.run import cast
from stridescope.engine.dtype import scalar_name
from stridescope.engine.kernels import draws
from stridescope.engine.kernels.mersenne import Stream
from stridescope.engine.layout import is_contiguous, iterator_order
from stridescope.engine.ops.generator import Generator, source_for
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, alias

Draw = Callable[[Any, int], Array]


def fill(target: Tensor, generator: Generator | None, draw: Draw) -> Tensor:
    """Write ``draw(source, count)`` into ``target``, innermost dim of the memory first."""
    count = target._array.size
    if not count or target._device is META:  # nothing is drawn for what has no values
        return target
    values = draw(source_for(generator, target.device), count)
    place(target, values)
    return target


def place(target: Tensor, values: Array) -> None:
    """Write values, given in the order of memory, into a tensor."""
    array = target._array
    if values.dtype != array.dtype:
        values = cast(values, target.dtype)
    if is_contiguous(array.shape, target.strides):
        array[...] = values.reshape(array.shape)
        return
    outermost_first = tuple(reversed(iterator_order([array.shape], [target.strides])))
    array.transpose(outermost_first)[...] = values.reshape([array.shape[d] for d in outermost_first])


def pairs(target: Tensor) -> Tensor:
    """A complex tensor as real numbers; a real one itself."""
    if not target.dtype.is_complex:
        return target
    pair = alias(target)
    parts = target._array.real
    item = parts.itemsize
    pair._array = np.lib.stride_tricks.as_strided(parts, (*parts.shape, 2), (*parts.strides, item))
    pair.dtype = target.dtype.to_real()
    return pair


def need_float(kernel: str, target: Tensor) -> None:
    """Refuse a dtype for which PyTorch has no such kernel; for no elements it asks for none."""
    if not target.dtype.is_floating_point and target._array.size:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(target.dtype)}'")


def uniform(target: Tensor, low: float, high: float, generator: Generator | None) -> Tensor:
    """Uniform values in [low, high)."""
    real = pairs(target)
    if not real.dtype.is_floating_point:
        raise not_implemented("check_uniform_bounds", real.dtype)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    kind = real.dtype.np
    fill(
        real,
        generator,
        lambda source, n: (
            source.uniform(n, kind, low, high)
            if isinstance(source, CudaGenerator)
            else draws.uniform(source, n, kind, low, high)
        ),
    )
    return target


def normal(target: Tensor, mean: float, std: float, generator: Generator | None) -> Tensor:
    """Normal values; a complex number's parts have half the variance each."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    real = pairs(target)
    need_float("normal_kernel_cpu", real)
    if real is not target:
        std = std / 2.0**0.5
    kind, dense = real.dtype.np, is_contiguous(real._array.shape, real.strides)
    fill(
        real,
        generator,
        lambda source, n: (
            source.normal(n, kind, mean, std)
            if isinstance(source, CudaGenerator)
            else draws.normal(source, n, kind, mean, std, dense)
        ),
    )
    return target


def integers(target: Tensor, low: int, high: int, generator: Generator | None) -> Tensor:
    """Integers in [low, high)."""
    return fill(
        target,
        generator,
        lambda source, n: (
            source.integers(n, np.dtype(np.int64), low, high)
            if isinstance(source, CudaGenerator)
            else draws.integers(source, n, low, high)
        ),
    )


def bernoulli(target: Tensor, p: float, generator: Generator | None) -> Tensor:
    """Ones with probability ``p``, else zeros."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if target.dtype.is_complex and target._array.size:
        raise not_implemented("bernoulli_scalar_cpu_", target.dtype)
    return _drawn(target, generator, "bernoulli", p)


def exponential(target: Tensor, rate: float, generator: Generator | None) -> Tensor:
    """Exponential values."""
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    if not target.dtype.is_floating_point and target._array.size:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {scalar_name(target.dtype)}"
        )
    return _drawn(target, generator, "exponential", rate)


def _computed_in(target: Tensor) -> np.dtype[Any]:
    """The dtype in which a GPU computes the values of a tensor: float64 for its own, else float32."""
    return np.dtype(np.float64 if target.dtype.np == np.float64 else np.float32)


def cauchy(target: Tensor, median: float, sigma: float, generator: Generator | None) -> Tensor:
    """Cauchy values."""
    return _drawn(target, generator, "cauchy", median, sigma)


def geometric(target: Tensor, p: float, generator: Generator | None) -> Tensor:
    """How many tries the first success takes."""
    return _drawn(target, generator, "geometric", p)


def log_normal(target: Tensor, mean: float, std: float, generator: Generator | None) -> Tensor:
    """Exponentials of normal values."""
    return _drawn(target, generator, "log_normal", mean, std)


def _drawn(target: Tensor, generator: Generator | None, name: str, *parameters: float) -> Tensor:
    """Fill with the distribution that the GPU's generator and ``draws`` both know as ``name``."""
    kind = _computed_in(target)

    def values(source: Generator, n: int) -> Any:
        if isinstance(source, CudaGenerator):
            return getattr(source, name)(n, kind, *parameters)
        return getattr(draws, name)(source, n, *parameters)

    return fill(target, generator, values)


def any_value(target: Tensor, limit: int, generator: Generator | None) -> Tensor:
    """Any whole numbers that the dtype holds exactly and that are not negative; ``limit`` is one more than those."""
    kind = target.dtype.np
    return fill(
        target,
        generator,
        lambda source, n: (
            source.any_value(n, kind, limit) if isinstance(source, CudaGenerator) else draws.any_value(source, n, kind)
        ),
    )


def host_stream(generator: Generator | None, target: Tensor, op: str) -> Stream:
    """The CPU stream for a distribution whose GPU stream is not imitated."""
    source = source_for(generator, target.device)
    if isinstance(source, CudaGenerator):
        raise NotImplementedError(f"{op} on cuda: the GPU's random stream of this distribution is not imitated")
    return source  # type: ignore[no-any-return]
