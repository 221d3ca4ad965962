"""Dropout layers."""

from __future__ import annotations

from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules._function import _AppliedToOne


class _DropoutNd(_AppliedToOne):
    """Drops while training."""

    _passed, _shown = ("p", "training", "inplace"), "p={p}, inplace={inplace}"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        super().__init__()
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        """The probability, and whether the input is overwritten."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Elements become 0 with probability ``p``."""

    _function = F.dropout


class Dropout1d(_DropoutNd):
    """Whole channels of a sequence become 0."""

    _function = F.dropout1d


class Dropout2d(_DropoutNd):
    """Whole channels of an image become 0."""

    _function = F.dropout2d


class Dropout3d(_DropoutNd):
    """Whole channels of a volume become 0."""

    _function = F.dropout3d


class AlphaDropout(_DropoutNd):
    """Dropout that keeps the mean and variance of SELU activations."""

    _passed, _function = ("p", "training"), F.alpha_dropout  # type: ignore[assignment]


class FeatureAlphaDropout(_DropoutNd):
    """``AlphaDropout`` of whole channels."""

    _passed, _function = ("p", "training"), F.feature_alpha_dropout  # type: ignore[assignment]


named_as("dropout", globals())
