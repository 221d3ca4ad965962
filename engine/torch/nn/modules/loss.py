"""Losses as modules."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.nn import _reduction
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules.module import Module


class _Loss(Module):
    """A loss with its reduction: ``none``, ``mean`` or ``sum``.

    ``_function`` is called with the inputs, and with the attributes in ``_named`` by their names.
    """

    _function: ClassVar[Any] = None
    _named: ClassVar[tuple[str, ...]] = ()

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _reduction.chosen(size_average, reduce, reduction)

    def _applied(self, *inputs: Any) -> Any:
        kept = {name: getattr(self, name) for name in self._named}
        return type(self)._function(*inputs, **kept, reduction=self.reduction)


class _Targeted(_Loss):
    """A loss of one input and its target."""

    @in_each
    def forward(self, input: Tensor, target: Tensor) -> Any:
        """Call the loss."""
        return self._applied(input, target)


class _WeightedLoss(_Loss):
    """A loss with weights, kept as a buffer."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Targeted):
    """The absolute difference."""

    _function = F.l1_loss


class MSELoss(_Targeted):
    """The squared difference."""

    _function = F.mse_loss


class SmoothL1Loss(_Targeted):
    """Squared for small differences, absolute for large ones."""

    _function, _named = F.smooth_l1_loss, ("beta",)

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta


class HuberLoss(_Targeted):
    """Squared for small differences, linear for large ones."""

    _function, _named = F.huber_loss, ("delta",)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta


class SoftMarginLoss(_Targeted):
    """The logistic loss of a prediction and a target of 1 or -1."""

    _function = F.soft_margin_loss


class BCELoss(_Targeted, _WeightedLoss):
    """The cross entropy of probabilities and targets between 0 and 1."""

    _function, _named = F.binary_cross_entropy, ("weight",)


class BCEWithLogitsLoss(_Targeted):
    """The cross entropy of predictions before their sigmoid and targets between 0 and 1."""

    _function, _named = F.binary_cross_entropy_with_logits, ("weight", "pos_weight")

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


class KLDivLoss(_Targeted):
    """The Kullback-Leibler divergence of log probabilities from targets."""

    _function, _named = F.kl_div, ("log_target",)

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target


class NLLLoss(_Targeted, _WeightedLoss):
    """Minus the log probability of each element's class."""

    _function, _named = F.nll_loss, ("weight", "ignore_index")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index


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


class CrossEntropyLoss(_Targeted, _WeightedLoss):
    """The cross entropy of predictions before their softmax and class numbers or probabilities."""

    _function, _named = F.cross_entropy, ("weight", "ignore_index", "label_smoothing")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing


class PoissonNLLLoss(_Loss):
    """Minus the log likelihood of a Poisson distribution."""

    _function, _named = F.poisson_nll_loss, ("log_input", "full", "eps")

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Any:
        """Call the loss."""
        return self._applied(log_input, target)


named_as("loss", globals())
