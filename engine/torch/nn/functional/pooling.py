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
