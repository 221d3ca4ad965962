"""Normalisation: batch, layer, group, instance, RMS and local response norms; vectors of length one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.functional._native import NATIVE, TORCH


def _verify_batch_size(size: Sequence[int]) -> None:
    count = size[0]
    for extent in size[2:]:
        count *= extent
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _verify_spatial_size(size: Sequence[int]) -> None:
    count = 1
    for extent in size[2:]:
        count *= extent
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel with its mean taken out and divided by its deviation, then scaled."""
    if training:
        _verify_batch_size(input.size())
    if training and eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    return TORCH["batch_norm"](input, weight, bias, running_mean, running_var, training, momentum, eps, True)  # type: ignore[no-any-return]


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Batch norm of every sample by itself."""
    if use_input_stats:
        _verify_spatial_size(input.size())
    return TORCH["instance_norm"](  # type: ignore[no-any-return]
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The last dims with their mean taken out and divided by their deviation, then scaled."""
    return TORCH["layer_norm"](input, normalized_shape, weight, bias, eps, True)  # type: ignore[no-any-return]


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The last dims divided by their root mean square, then scaled."""
    return TORCH["rms_norm"](input, normalized_shape, weight, eps)  # type: ignore[no-any-return]


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Groups of channels with their mean taken out and divided by their deviation, then scaled."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = input.size()
    _verify_batch_size([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    return TORCH["group_norm"](input, num_groups, weight, bias, eps, True)  # type: ignore[no-any-return]


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Each element divided by a power of the squares of its neighbours in other channels."""
    dims = input.dim()
    if dims < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {dims} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    if dims == 3:
        wide = NATIVE["pad"](squares.unsqueeze(1), (0, 0, size // 2, (size - 1) // 2))
        mean = NATIVE["avg_pool2d"](wide, (size, 1), stride=1).squeeze(1)
    else:
        shape = input.size()
        flat = squares.view(shape[0], 1, shape[1], shape[2], -1)
        wide = NATIVE["pad"](flat, (0, 0, 0, 0, size // 2, (size - 1) // 2))
        mean = NATIVE["avg_pool3d"](wide, (size, 1, 1), stride=1).squeeze(1).view(shape)
    return input / mean.mul(alpha).add(k).pow(beta)  # type: ignore[no-any-return]


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Vectors along a dim, divided by their norm."""
    if out is None:
        return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)  # type: ignore[no-any-return]
    length = input.norm(p, dim, keepdim=True).clamp_min_(eps).expand_as(input)
    return TORCH["div"](input, length, out=out)  # type: ignore[no-any-return]
