"""Pooling: maxima and averages of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.functional._native import NATIVE, TORCH

avg_pool1d, avg_pool2d, avg_pool3d = TORCH["avg_pool1d"], NATIVE["avg_pool2d"], NATIVE["avg_pool3d"]


def _max_pool(dims: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``max_pool{dims}d``, and the form that also returns where the maxima stood."""

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The maximum of each window, and its place."""
        space = TORCH if dims == 1 else NATIVE
        step = [] if stride is None else stride
        return space[f"max_pool{dims}d_with_indices"](input, kernel_size, step, padding, dilation, ceil_mode)

    def max_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The maximum of each window; with ``return_indices`` also its place."""
        if return_indices:
            return with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
        step = [] if stride is None else stride
        return TORCH[f"max_pool{dims}d"](input, kernel_size, step, padding, dilation, ceil_mode)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{dims}d"
    with_indices.__name__ = with_indices.__qualname__ = f"max_pool{dims}d_with_indices"
    return max_pool, with_indices


max_pool1d, max_pool1d_with_indices = _max_pool(1)
max_pool2d, max_pool2d_with_indices = _max_pool(2)
max_pool3d, max_pool3d_with_indices = _max_pool(3)

# ---- to a given size -------------------------------------------------------------------------------------------------

adaptive_avg_pool1d = TORCH["adaptive_avg_pool1d"]


def _sizes(input: Tensor, output_size: Any, dims: int) -> Any:
    """None stands for the input's own size."""
    if isinstance(output_size, int):
        return (output_size,) * dims
    own = input.shape[-dims:]
    if len(input.shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    if all(n is not None for n in output_size):
        return tuple(output_size)
    return tuple(n if size is None else size for size, n in zip(output_size, own, strict=True))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Averages of as many windows as asked for."""
    return NATIVE["adaptive_avg_pool2d"](input, _sizes(input, output_size, 2))  # type: ignore[no-any-return]


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Averages of as many windows as asked for."""
    return NATIVE["adaptive_avg_pool3d"](input, _sizes(input, output_size, 3))  # type: ignore[no-any-return]


def _adaptive_max(dims: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        """Maxima of as many windows as asked for, and their places."""
        if dims == 1:
            return TORCH["adaptive_max_pool1d"](input, output_size)
        return NATIVE[f"adaptive_max_pool{dims}d"](input, _sizes(input, output_size, dims))

    def adaptive_max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        """Maxima of as many windows as asked for; with ``return_indices`` also their places."""
        found = with_indices(input, output_size)
        return found if return_indices else found[0]

    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = f"adaptive_max_pool{dims}d"
    with_indices.__name__ = with_indices.__qualname__ = f"adaptive_max_pool{dims}d_with_indices"
    return adaptive_max_pool, with_indices


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max(3)

# ---- at random places ------------------------------------------------------------------------------------------------


def _fractional(dims: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    name = f"fractional_max_pool{dims}d"

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        """Maxima of windows at random places, and the maxima's places."""
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratio = _each(output_ratio, dims) if not isinstance(output_ratio, float) else (output_ratio,) * dims
            output_size = [int(n * part) for n, part in zip(input.shape[-dims:], ratio, strict=True)]
        if _random_samples is None:
            batch = input.shape[0] if input.dim() == dims + 2 else 1
            size = (batch, input.size(-dims - 1), dims)
            _random_samples = TORCH["rand"](size, dtype=input.dtype, device=input.device)
        return NATIVE[name](input, kernel_size, output_size, _random_samples)

    def fractional_max_pool(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        """Maxima of windows at random places; with ``return_indices`` also the maxima's places."""
        found = with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
        return found if return_indices else found[0]

    fractional_max_pool.__name__ = fractional_max_pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    return fractional_max_pool, with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional(3)

# ---- power averages --------------------------------------------------------------------------------------------------


def _lp(input: Tensor, norm_type: float, kernel: Any, stride: Any, ceil_mode: bool, dims: int) -> Any:
    size = (kernel,) * dims if isinstance(kernel, int) else tuple(kernel)
    count = 1
    for n in size:
        count *= n
    powered = input.pow(norm_type)
    space = TORCH if dims == 1 else NATIVE
    step = [] if stride is None else stride
    out = space[f"avg_pool{dims}d"](powered, kernel, step, 0, ceil_mode)
    return (TORCH["sign"](out) * TORCH["relu"](out.abs())).mul(count).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The power sum of each window's elements."""
    return _lp(input, norm_type, kernel_size, stride, ceil_mode, 1)  # type: ignore[no-any-return]


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The power sum of each window's elements."""
    return _lp(input, norm_type, kernel_size, stride, ceil_mode, 2)  # type: ignore[no-any-return]


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The power sum of each window's elements."""
    return _lp(input, norm_type, kernel_size, stride, ceil_mode, 3)  # type: ignore[no-any-return]


# ---- unpooling -------------------------------------------------------------------------------------------------------


def _each(value: Any, dims: int) -> tuple[int, ...]:
    return (value,) * dims if isinstance(value, int) else tuple(value)


def _unpooled_size(input: Tensor, kernel: Any, stride: Any, padding: Any, output_size: Any, dims: int) -> list[int]:
    own = input.size()
    default = [(own[-dims + d] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(dims)]
    if output_size is None:
        return default
    if len(output_size) == dims + 2:
        output_size = output_size[2:]
    if len(output_size) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for d in range(dims):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(f"invalid output_size {output_size} (dim {d} must be between {low} and {high})")
    return list(output_size)


def _unpool(input: Tensor, indices: Tensor, kernel: Any, stride: Any, padding: Any, output_size: Any, dims: int) -> Any:
    size, pad = _each(kernel, dims), _each(padding, dims)
    step = size if stride is None else _each(stride, dims)
    wanted = _unpooled_size(input, size, step, pad, output_size, dims)
    if dims == 1:
        wide = NATIVE["max_unpool2d"](input.unsqueeze(-1), indices.unsqueeze(-1), [*wanted, 1])
        return wide.squeeze(-1)
    if dims == 2:
        return NATIVE["max_unpool2d"](input, indices, wanted)
    return NATIVE["max_unpool3d"](input, indices, wanted, step, pad)


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The elements put where the maxima stood, zeros elsewhere."""
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 1)  # type: ignore[no-any-return]


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The elements put where the maxima stood, zeros elsewhere."""
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 2)  # type: ignore[no-any-return]


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The elements put where the maxima stood, zeros elsewhere."""
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 3)  # type: ignore[no-any-return]
