"""Distances as modules."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules._function import _Applied


class CosineSimilarity(_Applied):
    """The cosine of the angle between vectors along a dim."""

    _function, _passed = F.cosine_similarity, ("dim", "eps")

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Any:
        """Call the distance."""
        return self._applied(x1, x2)


class PairwiseDistance(_Applied):
    """The p-norm of the difference along the last dim."""

    _function, _passed = F.pairwise_distance, ("norm", "eps", "keepdim")

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Any:
        """Call the distance."""
        return self._applied(x1, x2)


named_as("distance", globals())
