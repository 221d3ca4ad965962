"""Losses over whole outputs: alignments of sequences, and a linear layer with its cross entropy in one."""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine.dtype import bfloat16, float16, float32, int64
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn._reduction import get_enum
from stridescope.engine.torch.nn.functional._native import NATIVE, TORCH
from stridescope.engine.warn import warn


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log probability of targets over all their alignments with [time, batch, class] predictions."""
    made: Tensor = TORCH["ctc_loss"](
        log_probs, targets, input_lengths, target_lengths, blank, get_enum(reduction), zero_infinity
    )
    return made


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """The cross entropy of ``input`` after a linear layer; raises RuntimeError for shapes that don't fit.

    ``options`` asks PyTorch to work in pieces of the batch. Here they are checked, and the loss is computed whole.
    """
    _check_linear(input, linear_weight, linear_bias)
    classes, further = linear_weight.shape[0], tuple(linear_weight.shape[1:-1])
    shape = (*input.shape[:-1], classes, *further)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if options is not None:
        _check_options(options, input, linear_weight, target, linear_bias, reduction, label_smoothing)
    if further:
        flat = math.prod(further, start=classes)
        linear_weight = linear_weight.reshape((flat, input.shape[-1]))
        linear_bias = None if linear_bias is None else linear_bias.reshape(flat)
    logits = NATIVE["linear"](input, linear_weight, linear_bias).reshape(shape)
    made: Tensor = NATIVE["cross_entropy_loss"](
        logits, target, weight, get_enum(reduction), -100 if ignore_index is None else ignore_index, label_smoothing
    )
    return made


def _check_linear(input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> None:
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    wanted = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != wanted:
        raise RuntimeError(f"expected linear_bias shape {wanted}, got {tuple(linear_bias.shape)}")
    if len(wanted) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )


def _check_options(
    options: Any,
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    reduction: str,
    label_smoothing: float,
) -> None:
    further = tuple(linear_weight.shape[1:-1])
    if further or reduction not in ("mean", "sum", "none") or label_smoothing != 0.0 or target.dtype is not int64:
        warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, "
            f"label_smoothing == 0, target.dtype == int64, out_features == (). Got reduction={reduction!r}, "
            f"label_smoothing={label_smoothing}, target.dtype={target.dtype}, out_features={further}, tracing=False, "
            f"linear_bias.shape={None if linear_bias is None else tuple(linear_bias.shape)}."
        )
        return
    wide, kind = options.acc_dtype, input.dtype
    if wide not in (None, kind) and not (wide is float32 and kind in (float16, bfloat16)):
        raise RuntimeError(
            f"linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but got {wide} acc_dtype "
            f"and {kind} inputs."
        )
    batches = input.shape[0] if input.dim() == 2 else 1
    options._adjust(
        num_batches=batches, in_features=input.shape[-1], num_classes=linear_weight.shape[0], dtype=input.dtype,
        device=input.device,
    )  # fmt: skip
