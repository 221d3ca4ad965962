"""Pooling to a given size: adaptive averages and maxima, and the maxima put back (unpooling)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, int64, scalar_name
from stridescope.engine.kernels import pooling as kernels
from stridescope.engine.ops.determinism import alert
from stridescope.engine.ops.pooling import GATHER, define_spread
from stridescope.engine.ops.pooling_checks import check_1d, check_adaptive_grad
from stridescope.engine.ops.pooling_layout import batched, channels_last, flat_channels_last, of_kernel, pooled
from stridescope.engine.tensor import Tensor

NAMESPACE = "torch._C._nn"
Ints = Sequence[int]


def _matrices(sizes: Ints, out: Ints, kind: Any) -> list[Any]:
    wide = np.float32 if np.dtype(kind).itemsize == 2 else kind
    return [kernels.averaging(size, n, wide) for size, n in zip(sizes, out, strict=True)]


def _check_shape(self: Tensor, dims: int, name: str, colon: str) -> None:
    shape = list(self.shape)
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} {shape}")
    for dim in range(1 if name != "adaptive_avg_pool2d" else len(shape) - dims, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {shape} "
                f"with dimension {dim} being empty"
            )


def _average_core(dims: int) -> Any:
    name = f"adaptive_avg_pool{dims}d"

    def run(self: Tensor, output_size: Ints) -> Tensor:
        _check_shape(self, dims, name, "")
        last, empty = flat_channels_last(self, dims), not self._array.size or 0 in output_size
        if self.dtype.category != FLOAT and not (empty and dims == 2):
            raise not_implemented(f"{name}_cpu" if dims == 3 else of_kernel(name, last), self.dtype)
        array = resolved(self)
        sizes = _matrices(array.shape[-dims:], output_size, array.dtype)
        return pooled(kernels.along(array, sizes), self, last)

    def back(grad_output: Tensor, self: Tensor) -> Tensor:
        check_adaptive_grad(f"{name}_backward", grad_output)
        grad = resolved(grad_output)
        shares = [m.T for m in _matrices(self._array.shape[-dims:], grad.shape[-dims:], grad.dtype)]
        return pooled(kernels.along(grad, shares), self, flat_channels_last(self, dims))

    backward = define(
        f"_{name}_backward(Tensor grad_output, Tensor self) -> Tensor",
        doc="Each element's share of the gradients of its windows.",
        run=back,
        grads={
            "grad_output": lambda grad, grad_output_sym_sizes: core.call(grad, grad_output_sym_sizes[-dims:]),
            "self": lambda self: zeros_like(self),
        },
        method=False,
        function=False,
    )
    core = define(
        f"_{name}(Tensor self, SymInt[{dims}] output_size) -> Tensor",
        doc="Averages of as many windows as asked for.",
        run=run,
        grads={"self": lambda grad, self: backward.call(grad, self)},
        method=False,
    )
    return core


CORES = {dims: _average_core(dims) for dims in (2, 3)}


def _average(self: Tensor, output_size: Ints, dims: int) -> Any:
    name = f"adaptive_avg_pool{dims}d"
    if len(output_size) != dims:
        raise RuntimeError(f"{name}: output_size must be {dims}")
    if any(n < 0 for n in output_size):
        sizes = ", ".join(map(str, output_size[:2])) + "".join(f",{n}" for n in output_size[2:])
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{sizes}}}"
        )
    if all(n == 1 for n in output_size):
        out = self.mean(tuple(range(-1, -dims - 1, -1)), True)
        if not channels_last(self, dims):
            return out
        n, c = self.shape[:2]
        return out.as_strided_((n, c, *(1,) * dims), (c, 1, *(c,) * dims))
    return CORES[dims].call(self, output_size)


def _max_core(dims: int) -> Any:
    name = f"adaptive_max_pool{dims}d"

    def run(self: Tensor, output_size: Ints) -> tuple[Tensor, Tensor]:
        _check_shape(self, dims, name, ":")
        if len(output_size) != dims:
            raise RuntimeError(f"{name}(): internal error: output_size.size() must be {dims}")
        if any(n < 0 for n in output_size):
            shape = [*self.shape[:-dims], *output_size]
            low = next(n for n in output_size if n < 0)
            raise RuntimeError(f"Trying to create tensor with negative dimension {low}: {shape}")
        last = flat_channels_last(self, dims)
        if self.dtype.category != FLOAT:
            raise not_implemented(f"{name}_cpu" if dims == 3 else of_kernel(name, last), self.dtype)
        values, places = kernels.adaptive_max(batched(resolved(self), dims), output_size)
        return pooled(values, self, last), pooled(places, self, last, int64)

    backward = define_spread(f"{name}_backward", dims)
    return define(
        f"{name}(Tensor self, int[{dims}] output_size) -> (Tensor, Tensor)",
        doc="Maxima of as many windows as asked for, and their places.",
        run=run,
        grads={"self": lambda grad, self, result1: backward.call(grad, self, result1)},
        node=f"AdaptiveMaxPool{dims}DBackward0",
        differentiable_outputs=(0,),
        samples=[((2, 3, *(6,) * dims), [2] * dims)],
        method=False,
        namespace=NAMESPACE,
    )


MAXIMA = {dims: _max_core(dims) for dims in (2, 3)}
for _dims in (2, 3):
    define(
        f"adaptive_avg_pool{_dims}d(Tensor self, SymInt[{_dims}] output_size) -> Tensor",
        doc="Averages of as many windows as asked for.",
        composite=lambda self, output_size, dims=_dims: _average(self, output_size, dims),
        samples=[((2, 3, *(6,) * _dims), [2] * _dims)],
        method=False,
        namespace=NAMESPACE,
    )


def _check_one(name: str, output_size: Ints) -> None:
    if len(output_size) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(output_size)})")


def _average_1d(self: Tensor, output_size: Ints) -> Any:
    check_1d(self, "adaptive_avg_pool1d")
    _check_one("adaptive_avg_pool1d", output_size)
    return _average(self.unsqueeze(-2), (1, output_size[0]), 2).squeeze(-2)


def _max_1d(self: Tensor, output_size: Ints) -> Any:
    check_1d(self, "adaptive_max_pool1d")
    _check_one("adaptive_max_pool1d", output_size)
    shape = list(self.shape)
    for dim in range(1, len(shape)):
        if not shape[dim]:
            raise RuntimeError(
                "adaptive_max_pool1d(): Expected input to have non-zero size for non-batch dimensions, but input has "
                f"sizes {shape} with dimension {dim} being empty"
            )
    values, places = MAXIMA[2].call(self.unsqueeze(-2), (1, output_size[0]))
    return values.squeeze(-2), places.squeeze(-2)


define(
    "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
    doc="Averages of as many windows as asked for.",
    composite=_average_1d,
    samples=[((2, 3, 8), [3])],
    method=False,
)
define(
    "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
    doc="Maxima of as many windows as asked for, and their places.",
    composite=_max_1d,
    samples=[((2, 3, 8), [3])],
    method=False,
)

# ---- unpooling -------------------------------------------------------------------------------------------------------


def _unpool(self: Tensor, indices: Tensor, output_size: Ints, dims: int) -> Tensor:
    if indices.dtype is not int64:
        given = f" but got: {scalar_name(indices.dtype)}" if dims == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{given}")
    if self.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(self.shape)}) but got indices "
            f"tensor with shape: {list(indices.shape)}"
        )
    shape = list(self.shape)
    for dim in range(1, len(shape)):
        if not shape[dim]:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                f"dimensions, but got {shape} with dimension {dim} being empty."
            )
    if self.dtype.category != FLOAT:
        raise not_implemented(of_kernel(f"max_unpool{dims}d", flat_channels_last(self, dims)), self.dtype)
    array, places = batched(resolved(self), dims), batched(resolved(indices), dims)
    total = int(np.prod(output_size))
    bad = (places < 0) | (places >= total)
    if bad.any():
        raise RuntimeError(
            f"Found an invalid max index: {places[bad].flat[0]} (output volumes are of size "
            f"{'x'.join(map(str, output_size))})"
        )
    flat = (array.shape[0] * array.shape[1], math.prod(array.shape[2:]))
    result = np.zeros((flat[0], total), array.dtype)
    np.put_along_axis(result, places.reshape(flat), array.reshape(flat), 1)
    return pooled(result.reshape((*array.shape[:2], *output_size)), self, flat_channels_last(self, dims))


def _define_unpool(dims: int) -> None:
    more = f", int[{dims}] stride, int[{dims}] padding" if dims == 3 else ""

    def run(self: Tensor, indices: Tensor, output_size: Ints, stride: Any = None, padding: Any = None) -> Tensor:
        alert(f"max_unpooling{dims}d_forward_out")
        return _unpool(self, indices, output_size, dims)

    define(
        f"max_unpool{dims}d(Tensor self, Tensor indices, SymInt[{dims}] output_size{more}) -> Tensor",
        doc="The elements put at the places of a pooling, zeros elsewhere.",
        run=run,
        grads={"self": lambda grad, indices: GATHER[dims].call(grad, indices)},
        node=f"MaxUnpool{dims}DBackward0",
        method=False,
        namespace=NAMESPACE,
    )


for _dims in (2, 3):
    _define_unpool(_dims)
