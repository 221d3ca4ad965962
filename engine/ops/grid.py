"""Sampling images and volumes at places of a grid, and the grids of affine maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, scalar_name
from stridescope.engine.kernels import grid as kernels
from stridescope.engine.ops import grid_second
from stridescope.engine.ops.conv import formatted
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.tensor import Tensor, dense, fresh

BILINEAR, NEAREST, BICUBIC = 0, 1, 2
Ints = Sequence[int]


def _check(input: Tensor, grid: Tensor, mode: int, dims: int) -> None:
    shapes = f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.dim() and grid.dim() and input.shape[0] != grid.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {shapes}")
    if grid.dim() and grid.shape[-1] != input.dim() - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.dim() - 2} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    for dim in range(2, input.dim()):
        if not input.shape[dim]:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(input.shape)} with dimension {dim} being empty"
            )
    if not input.dim() == grid.dim() == dims + 2:
        raise RuntimeError(
            f"grid_sampler(): expected {dims + 2}D input and grid with same number of dimensions, {shapes}"
        )
    if mode == BICUBIC and dims == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


def _run(dims: int, input: Tensor, grid: Tensor, mode: int, padding: int, align: bool) -> Tensor:
    _check(input, grid, mode, dims)
    if input.dtype.category != FLOAT:
        raise not_implemented("grid_sampler_2d_cpu_kernel_impl" if dims == 2 else "grid_sampler3d_cpu", input.dtype)
    if input.dtype is not grid.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(grid.dtype)}")
    array, places = _wide(input), _wide(grid)
    result = kernels.sample(array, places, mode, padding, align)
    return fresh(formatted(result.astype(input.dtype.np, copy=False), input), input.dtype, input.device)


def _wide(tensor: Tensor) -> Any:
    array = resolved(tensor)
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def _back(
    grad_output: Tensor, input: Tensor, grid: Tensor, mode: int, padding: int, align: bool, mask: Sequence[bool]
) -> tuple[Any, Any]:
    found = kernels.sample_backward(_wide(grad_output), _wide(input), _wide(grid), mode, padding, align)
    first = fresh(dense(found[0].astype(input.dtype.np)), input.dtype, input.device) if mask[0] else None
    return first, fresh(dense(found[1].astype(grid.dtype.np)), grid.dtype, grid.device) if mask[1] else None


def _define(dims: int) -> None:
    name = f"grid_sampler_{dims}d"
    backward = define(
        f"{name}_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
        "bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
        doc="The gradients of the image and of the places.",
        run=_back,
        grads={"grad_output,input,grid": grid_second.second_grads},
        node=f"GridSampler{dims}DBackwardBackward0",
        method=False,
        function=False,
    )

    def grad_both(
        grad: Tensor,
        needs: Sequence[bool],
        input: Tensor,
        grid: Tensor,
        interpolation_mode: int,
        padding_mode: int,
        align_corners: bool,
    ) -> Any:
        return backward.call(grad, input, grid, interpolation_mode, padding_mode, align_corners, tuple(needs))

    define(
        f"{name}(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
        doc="The elements at the places of a grid, mixed from their neighbours.",
        run=lambda *args: _run(dims, *args),
        grads={"input,grid": grad_both},
        node=f"GridSampler{dims}DBackward0",
        method=False,
    )


for _dims in (2, 3):
    _define(_dims)


def _sampler(input: Tensor, grid: Tensor, mode: int, padding: int, align: bool) -> Any:
    return op_call("grid_sampler_2d" if input.dim() == 4 else "grid_sampler_3d")(input, grid, mode, padding, align)


define(
    "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    doc="The elements at the places of a grid.",
    composite=_sampler,
    method=False,
)


def _base_grid(size: Ints, align: bool, kind: Any) -> Any:
    """(1, positions, dims + 1): the places of all elements between -1 and 1, x first, and a one."""
    lines = []
    for n in size[2:]:
        line = np.linspace(-1, 1, n, dtype=kind) if n > 1 else np.zeros(1, kind)
        lines.append(line if align or n <= 1 else line * kind((n - 1) / n))
    mesh = np.meshgrid(*lines, indexing="ij")
    flat = [m.reshape(-1) for m in reversed(mesh)]
    return np.stack([*flat, np.ones_like(flat[0])], -1)[None]


def _affine(theta: Tensor, size: Ints, align_corners: bool) -> Tensor:
    array = resolved(theta)
    base = _base_grid(size, align_corners, array.dtype.type)
    if Interceptors.before:  # autocast knows the product that PyTorch makes here
        whole = fresh(dense(np.broadcast_to(base, (size[0], *base.shape[1:]))), theta.dtype, theta.device)
        places: Tensor = op_call("bmm")(whole, theta.detach().transpose(1, 2))
        return places.view((size[0], *size[2:], len(size) - 2))  # type: ignore[no-any-return]
    grid = np.matmul(base, array.swapaxes(1, 2))
    return fresh(dense(grid.reshape((size[0], *size[2:], len(size) - 2))), theta.dtype, theta.device)


def _affine_back(grad: Tensor, size: Ints, align_corners: bool) -> Tensor:
    array = resolved(grad)
    base = _base_grid(size, align_corners, array.dtype.type)
    flat = array.reshape((size[0], -1, len(size) - 2))
    return fresh(dense(np.matmul(flat.swapaxes(1, 2), base)), grad.dtype, grad.device)


_affine_backward = define(
    "affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor",
    doc="The gradient of the affine maps.",
    run=_affine_back,
    grads={"grad": lambda grad, size, align_corners: affine.call(grad, size, align_corners)},  # type: ignore[has-type]
    method=False,
    function=False,
)
affine = define(
    "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
    doc="The places that affine maps give to the elements of an image.",
    run=_affine,
    grads={"theta": lambda grad, size, align_corners: _affine_backward.call(grad, size, align_corners)},
    samples=[((2, 2, 3), [2, 1, 3, 3], False)],
    method=False,
)
