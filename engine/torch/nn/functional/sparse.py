"""Rows picked by number."""

from __future__ import annotations

from typing import Any

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.dtype import int64
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.functional._native import TORCH
from stridescope.engine.warn import warn


def _shorten(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        TORCH["embedding_renorm_"](weight, input, max_norm, norm_type)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a table at these numbers."""
    if padding_idx is None:
        padding_idx = -1
    else:
        if not -weight.size(0) <= padding_idx < weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= weight.size(0)
    if max_norm is not None:
        input = input.contiguous()
        _shorten(weight, input, max_norm, norm_type)
    return TORCH["embedding"](weight, input, padding_idx, scale_grad_by_freq, sparse)  # type: ignore[no-any-return]


_MODES = {"sum": 0, "mean": 1, "max": 2}


def _flat_bags(input: Tensor, offsets: Any, per_sample: Any, include_last: bool) -> tuple[Any, Any, Any, bool]:
    """Bags as one list of numbers and where each bag starts."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        starts = TORCH["arange"](0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        return input.reshape(-1), starts, None if per_sample is None else per_sample.reshape(-1), False
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample, include_last


def _check_mode(mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Rows of a table, joined bag by bag."""
    if weight.dtype is int64 and input.is_floating_point():
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`."
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            "same "
            f"shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    numbers, starts, scales, last = _flat_bags(input, offsets, per_sample_weights, include_last_offset)
    _check_mode(mode, scale_grad_by_freq, sparse)
    if max_norm is not None:
        _shorten(weight, numbers, max_norm, norm_type)
    if scales is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    found = TORCH["embedding_bag"](
        weight, numbers, starts, scale_grad_by_freq, _MODES[mode], sparse, scales, last, padding_idx
    )
    return found[0]  # type: ignore[no-any-return]
