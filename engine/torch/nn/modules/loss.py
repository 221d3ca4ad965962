"""Losses as modules."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import _reduction
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules.module import Module


class _Loss(Module):
    """A loss with its reduction: ``none``, ``mean`` or ``sum``.

    ``function`` is called with the inputs, and with the attributes in ``named`` by their names.
    """

    function: ClassVar[Any] = None
    named: ClassVar[tuple[str, ...]] = ()

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", **kept: Any) -> None:
        super().__init__()
        self.reduction = _reduction.chosen(size_average, reduce, reduction)
        for name, value in kept.items():
            setattr(self, name, value)

    def forward(self, *inputs: Any) -> Any:
        """Call the loss."""
        kept = {name: getattr(self, name) for name in self.named}
        return type(self).function(*inputs, **kept, reduction=self.reduction)


class _WeightedLoss(_Loss):
    """A loss with weights, kept as a buffer."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        **kept: Any,
    ) -> None:
        super().__init__(size_average, reduce, reduction, **kept)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """The absolute difference."""

    function = F.l1_loss

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)


class MSELoss(_Loss):
    """The squared difference."""

    function = F.mse_loss

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)


class SmoothL1Loss(_Loss):
    """Squared for small differences, absolute for large ones."""

    function, named = F.smooth_l1_loss, ("beta",)

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction, beta=beta)


class HuberLoss(_Loss):
    """Squared for small differences, linear for large ones."""

    function, named = F.huber_loss, ("delta",)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction, delta=delta)


class SoftMarginLoss(_Loss):
    """The logistic loss of a prediction and a target of 1 or -1."""

    function = F.soft_margin_loss

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)


class BCELoss(_WeightedLoss):
    """The cross entropy of probabilities and targets between 0 and 1."""

    function, named = F.binary_cross_entropy, ("weight",)

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)


class BCEWithLogitsLoss(_Loss):
    """The cross entropy of predictions before their sigmoid and targets between 0 and 1."""

    function, named = F.binary_cross_entropy_with_logits, ("weight", "pos_weight")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of log probabilities from targets."""

    function, named = F.kl_div, ("log_target",)

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction, log_target=log_target)


class NLLLoss(_WeightedLoss):
    """Minus the log probability of each element's class."""

    function, named = F.nll_loss, ("weight", "ignore_index")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction, ignore_index=ignore_index)


class NLLLoss2d(NLLLoss):
    """The old name of NLLLoss for images."""

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy of predictions before their softmax and class numbers or probabilities."""

    function, named = F.cross_entropy, ("weight", "ignore_index", "label_smoothing")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            weight, size_average, reduce, reduction, ignore_index=ignore_index, label_smoothing=label_smoothing
        )


class PoissonNLLLoss(_Loss):
    """Minus the log likelihood of a Poisson distribution."""

    function, named = F.poisson_nll_loss, ("log_input", "full", "eps")

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction, log_input=log_input, full=full, eps=eps)


named_as("loss", globals())
