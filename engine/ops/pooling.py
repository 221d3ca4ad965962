"""Pooling with fixed windows: maxima (with their places) and averages over 1, 2 and 3 dims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.autograd.modes import may_be_differentiated
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import laid_out, resolved
from stridescope.engine.dtype import BOOL, FLOAT, int64
from stridescope.engine.kernels import pooling as kernels
from stridescope.engine.layout import contiguous_strides
from stridescope.engine.ops.pooling_checks import (
    check_1d,
    check_adaptive_grad,
    check_input,
    check_max_1d,
    windows_of,
)
from stridescope.engine.ops.pooling_layout import (
    batched,
    channels_last,
    flat_channels_last,
    of_kernel,
    pooled,
    unbatched,
    volume_channels_last,
)
from stridescope.engine.tensor import Tensor, bump_version, fresh

NAMESPACE = "torch._C._nn"
Ints = Sequence[int]


def picked(self: Tensor, places: Tensor, dims: int) -> Tensor:
    """The values at the places of a pooling: what its gradient's gradient is."""
    array = kernels.gather(batched(resolved(self), dims), batched(resolved(places), dims))
    return fresh(np.ascontiguousarray(unbatched(array, self)), self.dtype, self.device)


def spread(grad: Tensor, self: Tensor, places: Tensor, dims: int, last: bool) -> Tensor:
    """The gradient put at the places of a pooling, channels last where ``last``."""
    array = kernels.scatter(batched(resolved(grad), dims), batched(resolved(places), dims), self._array.shape[-dims:])
    return pooled(array, self, last)


def _define_gather(dims: int) -> Any:
    return define(
        f"_max_pool{dims}d_gather(Tensor self, Tensor indices) -> Tensor",
        doc="The elements at the places of a pooling.",
        run=lambda self, indices: picked(self, indices, dims),
        grads={"self": lambda grad, self, indices: SPREAD[dims].call(grad, self, indices)},
        method=False,
        function=False,
    )


def define_spread(name: str, dims: int, last: Callable[[Tensor, int], bool] = flat_channels_last) -> Any:
    """The op that carries the gradients of maxima over ``dims`` dims back to the places of a pooling."""

    def run(grad_output: Tensor, self: Tensor, indices: Tensor) -> Tensor:
        if name.startswith("adaptive"):
            check_adaptive_grad(name, grad_output)
        return spread(grad_output, self, indices, dims, last(self, dims))

    return define(
        f"{name}(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        doc="The gradient of each maximum, put where the maximum stood.",
        run=run,
        grads={
            "grad_output": lambda grad, indices: GATHER[dims].call(grad, indices),
            "self": lambda grad: zeros_like(grad),
        },
        method=False,
        function=False,
    )


GATHER = {dims: _define_gather(dims) for dims in (2, 3)}
SPREAD = {dims: define_spread(f"max_pool{dims}d_with_indices_backward", dims, channels_last) for dims in (2, 3)}


def _max_run(dims: int) -> Callable[..., tuple[Tensor, Tensor]]:
    name = f"max_pool{dims}d"

    def run(
        self: Tensor, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
    ) -> tuple[Tensor, Tensor]:
        how = windows_of(name, dims, kernel_size, stride, padding, dilation, ceil_mode)
        last = channels_last(self, 2) if dims == 2 else volume_channels_last(self)
        check_input(self, how, name)
        if self.dtype.category == BOOL or self.dtype.is_complex:
            raise not_implemented(of_kernel(name, last), self.dtype)
        values, places = kernels.max_pool(batched(resolved(self), dims), how)
        return pooled(values, self, last), pooled(places, self, last, int64)

    return run


def _define_max(dims: int) -> Any:
    size = f"int[{dims}]"

    def grad_self(
        grad: Tensor,
        self: Tensor,
        kernel_size: Ints,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        ceil_mode: bool,
        result1: Tensor,
    ) -> Tensor:
        return SPREAD[dims].call(grad, self, result1)  # type: ignore[no-any-return]

    arguments = f"(Tensor self, {size} kernel_size, {size} stride=[], {size} padding=0, {size} dilation=1, "
    with_indices = define(
        f"max_pool{dims}d_with_indices{arguments}bool ceil_mode=False) -> (Tensor, Tensor)",
        doc="The maximum of each window, and its place.",
        run=_max_run(dims),
        grads={"self": grad_self},
        node=f"MaxPool{dims}DWithIndicesBackward0",
        differentiable_outputs=(0,),
        samples=[((2, 3, *(6,) * dims), [2])],
        method=False,
        namespace=NAMESPACE,
    )
    define(
        f"max_pool{dims}d{arguments}bool ceil_mode=False) -> Tensor",
        doc="The maximum of each window.",
        composite=lambda self, kernel_size, stride, padding, dilation, ceil_mode: with_indices.call(
            self, kernel_size, stride, padding, dilation, ceil_mode
        )[0],
        samples=[((2, 3, *(6,) * dims), [2])],
        method=False,
    )
    return with_indices


max_pool2d, max_pool3d = _define_max(2), _define_max(3)


def _max_1d(self: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Any:
    check_max_1d(self, kernel, stride, padding, dilation, ceil_mode)
    if self.dtype.category != FLOAT:
        raise not_implemented("max_pool1d_impl", self.dtype)
    pooled: Tensor = _max_1d_pair(self, kernel, stride, padding, dilation, ceil_mode)[0]
    if may_be_differentiated(self):
        return pooled
    row_major = laid_out(pooled._array, contiguous_strides(pooled._array.shape))
    alone = fresh(row_major, pooled.dtype, pooled.device)
    if self._array.ndim == 2:
        bump_version(alone)  # PyTorch takes the batch of one out in place
    return alone


def _max_1d_pair(self: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Any:
    check_1d(self, "max_pool1d")
    numbers = ((1, kernel[0]), (1, (stride or kernel)[0]), (0, padding[0]), (1, dilation[0]), ceil_mode)
    return tuple(t.squeeze(-2) for t in max_pool2d.call(self.unsqueeze(-2), *numbers))


for _name, _composite, _returns in (
    ("max_pool1d", _max_1d, "Tensor"),
    ("max_pool1d_with_indices", _max_1d_pair, "(Tensor, Tensor)"),
):
    define(
        f"{_name}(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, "
        f"bool ceil_mode=False) -> {_returns}",
        doc="The maximum of each window.",
        composite=_composite,
        samples=[((2, 3, 8), [2])],
        method=False,
    )

# ---- averages ----------------------------------------------------------------------------------------------------


def _average_of(dims: int, name: str) -> Callable[..., Tensor]:
    def run(
        self: Tensor,
        kernel_size: Ints,
        stride: Ints,
        padding: Ints,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Tensor:
        how = windows_of(name, dims, kernel_size, stride, padding, (1,), ceil_mode)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        check_input(self, how, name)
        halves = dims == 2 or self.dtype.itemsize > 2
        if self.dtype is not int64 and not (self.dtype.category == FLOAT and halves):
            kernel = f"{name}_out_frame" if dims == 3 else of_kernel(name, channels_last(self, 2))
            raise not_implemented(kernel, self.dtype)
        array = kernels.average(batched(resolved(self), dims), how, count_include_pad, divisor_override)
        return pooled(array, self, flat_channels_last(self, dims))

    return run


def _average_back(dims: int, name: str) -> Callable[..., Tensor]:
    def run(
        grad_output: Tensor,
        self: Tensor,
        kernel_size: Ints,
        stride: Ints,
        padding: Ints,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Tensor:
        how = windows_of(name, dims, kernel_size, stride, padding, (1,), ceil_mode)
        grad = batched(resolved(grad_output), dims)
        array = kernels.average_backward(grad, self._array.shape[-dims:], how, count_include_pad, divisor_override)
        return pooled(array, self, flat_channels_last(self, dims))

    return run


def _define_average(dims: int) -> Any:
    name, size = f"avg_pool{dims}d", f"int[{dims}]"
    numbers = (
        f"{size} kernel_size, {size} stride=[], {size} padding=0, bool ceil_mode=False, bool count_include_pad=True, "
        "int? divisor_override=None"
    )

    def grad_self(
        grad: Tensor,
        self: Tensor,
        kernel_size: Ints,
        stride: Ints,
        padding: Ints,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Any:
        return back.call(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    def grad_back(
        grad: Tensor,
        kernel_size: Ints,
        stride: Ints,
        padding: Ints,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Any:
        return op.call(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    back = define(
        f"{name}_backward(Tensor grad_output, Tensor self, {numbers}) -> Tensor",
        doc="Each element's share of the gradients of its windows.",
        run=_average_back(dims, name),
        grads={"grad_output": grad_back, "self": lambda self: zeros_like(self)},
        method=False,
        function=False,
    )
    op = define(
        f"{name}(Tensor self, {numbers}) -> Tensor",
        doc="The average of each window.",
        run=_average_of(dims, name),
        grads={"self": grad_self},
        samples=[((2, 3, *(6,) * dims), [2])],
        method=False,
        namespace=NAMESPACE,
    )
    return op


avg_pool2d, avg_pool3d = _define_average(2), _define_average(3)


def _average_1d(
    self: Tensor, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool, count_include_pad: bool
) -> Any:
    check_1d(self, "avg_pool1d")
    for part, values in (("kernel_size", kernel), ("stride", stride), ("padding", padding)):
        if len(values) > 1:
            raise RuntimeError(f"avg_pool1d() argument '{part}' should contain one int (got {len(values)})")
    numbers = ((1, kernel[0]), (1, (stride or kernel)[0]), (0, padding[0]), ceil_mode, count_include_pad, None)
    return avg_pool2d.call(self.unsqueeze(-2), *numbers).squeeze(-2)


define(
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor",
    doc="The average of each window.",
    composite=_average_1d,
    samples=[((2, 3, 8), [2])],
    method=False,
)
