"""Losses of margins, rankings and distributions as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules.loss import _Loss, _Targeted, _WeightedLoss


class CosineEmbeddingLoss(_Loss):
    """The angle of like pairs, and how close unlike ones are beyond the margin."""

    _function, _named = F.cosine_embedding_loss, ("margin",)

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Any:
        """Call the loss."""
        return self._applied(input1, input2, target)


class CTCLoss(_Loss):
    """Minus the log probability of targets over all their alignments with the predictions."""

    _function, _named = F.ctc_loss, ("blank", "zero_infinity")

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Any:
        """Call the loss."""
        return self._applied(log_probs, targets, input_lengths, target_lengths)


class HingeEmbeddingLoss(_Targeted):
    """The distance of like pairs, and how far unlike ones are inside the margin."""

    _function, _named = F.hinge_embedding_loss, ("margin",)

    def __init__(
        self, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class MarginRankingLoss(_Loss):
    """How far the wrong input is ahead, beyond a margin."""

    _function, _named = F.margin_ranking_loss, ("margin",)

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Any:
        """Call the loss."""
        return self._applied(input1, input2, target)


class MultiLabelMarginLoss(_Targeted):
    """How far wrong classes are ahead of the right ones, beyond a margin of 1."""

    _function = F.multilabel_margin_loss


class MultiLabelSoftMarginLoss(_Targeted, _WeightedLoss):
    """The binary cross entropy of every class, averaged."""

    _function, _named = F.multilabel_soft_margin_loss, ("weight",)


class MultiMarginLoss(_Targeted, _WeightedLoss):
    """How far other classes are ahead of the right one, beyond a margin."""

    _function, _named = F.multi_margin_loss, ("p", "margin", "weight")

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
        super().__init__(weight, size_average, reduce, reduction)
        self.p, self.margin = p, margin


class TripletMarginLoss(_Loss):
    """How much nearer the positive should be than the negative."""

    _function, _named = F.triplet_margin_loss, ("margin", "p", "eps", "swap")

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
        super().__init__(size_average, reduce, reduction)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Any:
        """Call the loss."""
        return self._applied(anchor, positive, negative)


class TripletMarginWithDistanceLoss(_Loss):
    """``TripletMarginLoss`` with a distance of the user's own."""

    _function, _named = F.triplet_margin_with_distance_loss, ("distance_function", "margin", "swap")

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
        super().__init__(reduction=reduction)
        self.distance_function, self.margin, self.swap = chosen, margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Any:
        """Call the loss."""
        return self._applied(anchor, positive, negative)


class GaussianNLLLoss(_Loss):
    """Minus the log likelihood of a normal distribution."""

    _function, _named = F.gaussian_nll_loss, ("full", "eps")

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Any:
        """Call the loss."""
        return self._applied(input, target, var)


named_as("loss", globals())
