"""``torch.distributions``: the distributions that courses use; asking for another says that it is not here yet."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.continuous import (
    Cauchy,
    Exponential,
    Gumbel,
    Laplace,
    LogNormal,
    Normal,
    Uniform,
)
from stridescope.engine.torch.distributions.discrete import Bernoulli, Categorical, Geometric, OneHotCategorical
from stridescope.engine.torch.distributions.distribution import Distribution
from stridescope.engine.torch.distributions.kl import kl_divergence, register_kl
from stridescope.engine.torch.distributions.multivariate import Independent, MultivariateNormal

DISTRIBUTIONS = (
    Bernoulli, Categorical, Cauchy, Exponential, Geometric, Gumbel, Independent, Laplace, LogNormal,
    MultivariateNormal, Normal, OneHotCategorical, Uniform,
)  # fmt: skip

_FILES = {"MultivariateNormal": "multivariate_normal", "LogNormal": "log_normal"}
for _kind in (Distribution, *DISTRIBUTIONS):
    _kind.__module__ = f"torch.distributions.{_FILES.get(_kind.__name__, _kind.__name__.lower())}"
OneHotCategorical.__module__ = "torch.distributions.one_hot_categorical"

__getattr__ = attribute_of("torch.distributions")

__all__ = [
    "Bernoulli", "Categorical", "Cauchy", "Distribution", "Exponential", "Geometric", "Gumbel", "Independent",
    "Laplace", "LogNormal", "MultivariateNormal", "Normal", "OneHotCategorical", "Uniform", "constraints",
    "kl_divergence", "register_kl",
]  # fmt: skip
