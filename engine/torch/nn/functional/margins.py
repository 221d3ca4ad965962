"""Losses of margins, rankings and distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn._reduction import chosen, get_enum
from stridescope.engine.torch.nn.functional._native import NATIVE, TORCH


def _finished(loss: Tensor, reduction: str) -> Any:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The angle of like pairs, and how close unlike ones are beyond the margin."""
    number = get_enum(chosen(size_average, reduce, reduction))
    return TORCH["cosine_embedding_loss"](input1, input2, target, margin, number)  # type: ignore[no-any-return]


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The distance of like pairs, and how far unlike ones are inside the margin."""
    number = get_enum(chosen(size_average, reduce, reduction))
    return TORCH["hinge_embedding_loss"](input, target, margin, number)  # type: ignore[no-any-return]


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the wrong input is ahead, beyond a margin."""
    number = get_enum(chosen(size_average, reduce, reduction))
    dims = (input1.dim(), input2.dim(), target.dim())
    if not dims[0] == dims[1] == dims[2]:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return TORCH["margin_ranking_loss"](input1, input2, target, margin, number)  # type: ignore[no-any-return]


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far other classes are ahead of the right one, beyond a margin."""
    number = get_enum(chosen(size_average, reduce, reduction))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return NATIVE["multi_margin_loss"](input, target, p, margin, weight, number)  # type: ignore[no-any-return]


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far wrong classes are ahead of the right ones, beyond a margin of 1."""
    return NATIVE["multilabel_margin_loss"](input, target, get_enum(chosen(size_average, reduce, reduction)))  # type: ignore[no-any-return]


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of every class, averaged."""
    reduction = chosen(size_average, reduce, reduction)
    log_sigmoid = NATIVE["log_sigmoid"]
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    last = input.dim() - 1
    loss = loss.sum(dim=last) / input.size(last)
    return _finished(loss, reduction)  # type: ignore[no-any-return]


def _check_variance(input: Tensor, var: Any) -> Tensor:
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * TORCH["ones_like"](input)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() == input.size():
        return var  # type: ignore[no-any-return]
    if input.size()[:-1] == var.size():
        return var.unsqueeze(-1)  # type: ignore[no-any-return]
    if input.ndim == var.ndim and sum(b for a, b in zip(input.size(), var.size(), strict=True) if a != b) == 1:
        return var  # type: ignore[no-any-return]
    raise ValueError("var is of incorrect size")


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Minus the log likelihood of a normal distribution."""
    spread = _check_variance(input, var)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    spread = spread.clone()
    with no_grad():
        spread.clamp_(min=eps)
    loss = 0.5 * (spread.log() + (input - target) ** 2 / spread)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return _finished(loss, reduction)  # type: ignore[no-any-return]


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How much nearer the positive should be than the negative."""
    number = get_enum(chosen(size_average, reduce, reduction))
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return TORCH["triplet_margin_loss"](anchor, positive, negative, margin, p, eps, swap, number)  # type: ignore[no-any-return]


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``triplet_margin_loss`` with a distance of the user's own."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = (anchor.ndim, positive.ndim, negative.ndim)
    if not dims[0] == dims[1] == dims[2]:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    distance: Any = distance_function or TORCH["pairwise_distance"]
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = TORCH["minimum"](far, distance(positive, negative))
    return _finished((margin + near - far).clamp_min(0), reduction)  # type: ignore[no-any-return]
