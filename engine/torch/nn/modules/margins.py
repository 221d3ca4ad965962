"""Losses of margins, rankings and distributions as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules.loss import _Loss, _WeightedLoss


class CosineEmbeddingLoss(_Loss):
    """The angle of like pairs, and how close unlike ones are beyond the margin."""

    function, named = F.cosine_embedding_loss, ("margin",)

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction, margin=margin)


class CTCLoss(_Loss):
    """Minus the log probability of targets over all their alignments with the predictions."""

    function, named = F.ctc_loss, ("blank", "zero_infinity")

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction, blank=blank, zero_infinity=zero_infinity)


class HingeEmbeddingLoss(_Loss):
    """The distance of like pairs, and how far unlike ones are inside the margin."""

    function, named = F.hinge_embedding_loss, ("margin",)

    def __init__(
        self, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction, margin=margin)


class MarginRankingLoss(_Loss):
    """How far the wrong input is ahead, beyond a margin."""

    function, named = F.margin_ranking_loss, ("margin",)

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction, margin=margin)


class MultiLabelMarginLoss(_Loss):
    """How far wrong classes are ahead of the right ones, beyond a margin of 1."""

    function = F.multilabel_margin_loss

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The binary cross entropy of every class, averaged."""

    function, named = F.multilabel_soft_margin_loss, ("weight",)

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)


class MultiMarginLoss(_WeightedLoss):
    """How far other classes are ahead of the right one, beyond a margin."""

    function, named = F.multi_margin_loss, ("p", "margin", "weight")

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        super().__init__(weight, size_average, reduce, reduction, p=p, margin=margin)


class TripletMarginLoss(_Loss):
    """How much nearer the positive should be than the negative."""

    function, named = F.triplet_margin_loss, ("margin", "p", "eps", "swap")

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        super().__init__(size_average, reduce, reduction, margin=margin, p=p, eps=eps, swap=swap)


class TripletMarginWithDistanceLoss(_Loss):
    """``TripletMarginLoss`` with a distance of the user's own."""

    function, named = F.triplet_margin_with_distance_loss, ("distance_function", "margin", "swap")

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        from stridescope.engine.torch.nn.modules.distance import PairwiseDistance

        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        chosen = PairwiseDistance() if distance_function is None else distance_function
        super().__init__(reduction=reduction, distance_function=chosen, margin=margin, swap=swap)


class GaussianNLLLoss(_Loss):
    """Minus the log likelihood of a normal distribution."""

    function, named = F.gaussian_nll_loss, ("full", "eps")

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction, full=full, eps=eps)


named_as("loss", globals())
