"""Losses that compare numbers: squared, absolute, cross entropies, divergences."""

from __future__ import annotations

from typing import Any

from stridescope.engine.ops.views_shape import broadcast_tensors
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn._reduction import chosen, get_enum
from stridescope.engine.torch.nn.functional._native import NATIVE, TORCH
from stridescope.engine.warn import warn


def _warn_sizes(input: Tensor, target: Tensor) -> None:
    if target.size() != input.size():
        warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
        )


def _expanded(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    _warn_sizes(input, target)
    first, second = broadcast_tensors(input, target)
    return first, second


def _weighted(loss: Tensor, weight: Tensor, input: Tensor, reduction: str, name: str) -> Any:
    if weight.size() != input.size():
        raise ValueError(f"Weights and input must have the same size, got {weight.size()} and {input.size()}")
    weighted = loss * weight
    if reduction == "mean":
        return weighted.sum() / weight.sum()
    if reduction == "sum":
        return weighted.sum()
    if reduction != "none":
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
    return weighted


def _difference(
    name: str, input: Tensor, target: Tensor, legacy: tuple[bool | None, bool | None, str], weight: Tensor | None
) -> Tensor:
    """A loss of each pair of elements, weighted where weights are given; ``legacy`` is how the caller reduces."""
    first, second = _expanded(input, target)
    reduction = chosen(*legacy)
    if weight is not None:
        return _weighted(NATIVE[name](first, second, 0), weight, input, reduction, name)  # type: ignore[no-any-return]
    return NATIVE[name](first, second, get_enum(reduction))  # type: ignore[no-any-return]


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared difference."""
    return _difference("mse_loss", input, target, (size_average, reduce, reduction), weight)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute difference."""
    return _difference("l1_loss", input, target, (size_average, reduce, reduction), weight)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Squared for small differences, absolute for large ones."""
    first, second = _expanded(input, target)
    number = get_enum(chosen(size_average, reduce, reduction))
    if beta == 0.0:
        return NATIVE["l1_loss"](first, second, number)  # type: ignore[no-any-return]
    return NATIVE["smooth_l1_loss"](first, second, number, beta)  # type: ignore[no-any-return]


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Squared for small differences, linear for large ones."""
    first, second = _expanded(input, target)
    if weight is None:
        return NATIVE["huber_loss"](first, second, get_enum(reduction), delta)  # type: ignore[no-any-return]
    loss = NATIVE["huber_loss"](first, second, 0, delta)
    return _weighted(loss, weight, input, reduction, "huber_loss")  # type: ignore[no-any-return]


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The logistic loss of a prediction and a target of 1 or -1."""
    return NATIVE["soft_margin_loss"](input, target, get_enum(chosen(size_average, reduce, reduction)))  # type: ignore[no-any-return]


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of probabilities and targets between 0 and 1."""
    number = get_enum(chosen(size_average, reduce, reduction))
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(_joint_size(target, weight))
    return NATIVE["binary_cross_entropy"](input, target, weight, number)  # type: ignore[no-any-return]


def _joint_size(a: Tensor, b: Tensor) -> tuple[int, ...]:
    from stridescope.engine.layout import broadcast_shapes

    return broadcast_shapes(a.shape, b.shape)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The cross entropy of predictions before their sigmoid and targets between 0 and 1."""
    number = get_enum(chosen(size_average, reduce, reduction))
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return TORCH["binary_cross_entropy_with_logits"](input, target, weight, pos_weight, number)  # type: ignore[no-any-return]


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence of log probabilities from targets."""
    reduction = chosen(size_average, reduce, reduction)
    if reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release."
        )
    number = get_enum("sum" if reduction == "batchmean" else reduction)
    result = TORCH["kl_div"](input, target, number, log_target=log_target)
    return result / input.size()[0] if reduction == "batchmean" and input.dim() != 0 else result  # type: ignore[no-any-return]


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log probability of each element's class."""
    number = get_enum(chosen(size_average, reduce, reduction))
    return NATIVE["nll_loss_nd"](input, target, weight, number, ignore_index)  # type: ignore[no-any-return]


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of predictions before their softmax and class numbers or probabilities."""
    number = get_enum(chosen(size_average, reduce, reduction))
    return NATIVE["cross_entropy_loss"](input, target, weight, number, ignore_index, label_smoothing)  # type: ignore[no-any-return]


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log likelihood of a Poisson distribution."""
    reduction = chosen(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return TORCH["poisson_nll_loss"](input, target, log_input, full, eps, get_enum(reduction))  # type: ignore[no-any-return]
