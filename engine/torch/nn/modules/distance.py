"""Distances as modules."""

from __future__ import annotations

from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules._function import Applied


class CosineSimilarity(Applied):
    """The cosine of the angle between vectors along a dim."""

    function, passed = F.cosine_similarity, ("dim", "eps")

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__(dim=dim, eps=eps)


class PairwiseDistance(Applied):
    """The p-norm of the difference along the last dim."""

    function, passed = F.pairwise_distance, ("norm", "eps", "keepdim")

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__(norm=p, eps=eps, keepdim=keepdim)


named_as("distance", globals())
