"""Dropout layers."""

from __future__ import annotations

from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules._function import Applied


class _DropoutNd(Applied):
    """Drops while training."""

    passed, shown = ("p", "training", "inplace"), "p={p}, inplace={inplace}"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        super().__init__(p=p, inplace=inplace)

    def extra_repr(self) -> str:
        """The probability, and whether the input is overwritten."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Elements become 0 with probability ``p``."""

    function = F.dropout


class Dropout1d(_DropoutNd):
    """Whole channels of a sequence become 0."""

    function = F.dropout1d


class Dropout2d(_DropoutNd):
    """Whole channels of an image become 0."""

    function = F.dropout2d


class Dropout3d(_DropoutNd):
    """Whole channels of a volume become 0."""

    function = F.dropout3d


class AlphaDropout(_DropoutNd):
    """Dropout that keeps the mean and variance of SELU activations."""

    passed, function = ("p", "training"), F.alpha_dropout  # type: ignore[assignment]


class FeatureAlphaDropout(_DropoutNd):
    """``AlphaDropout`` of whole channels."""

    passed, function = ("p", "training"), F.feature_alpha_dropout  # type: ignore[assignment]


named_as("dropout", globals())
