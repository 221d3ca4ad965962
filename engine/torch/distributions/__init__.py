"""``torch.distributions``: samples, densities, entropies and divergences. Samples are PyTorch's from the same seed."""

from __future__ import annotations

from stridescope.engine.torch._elsewhere import file_of
from stridescope.engine.torch._in_each import write_out
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.distributions import constraints, kl_pairs, transforms
from stridescope.engine.torch.distributions.constraint_registry import biject_to, transform_to
from stridescope.engine.torch.distributions.continuous import Cauchy, Exponential, Laplace, Normal, Uniform
from stridescope.engine.torch.distributions.counts import Binomial, Multinomial, NegativeBinomial, Poisson
from stridescope.engine.torch.distributions.discrete import Bernoulli, Categorical, Geometric, OneHotCategorical
from stridescope.engine.torch.distributions.distribution import Distribution, ExponentialFamily
from stridescope.engine.torch.distributions.gammas import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, StudentT
from stridescope.engine.torch.distributions.kl import kl_divergence, register_kl
from stridescope.engine.torch.distributions.matrices import LKJCholesky, Wishart
from stridescope.engine.torch.distributions.multivariate import Independent, MultivariateNormal
from stridescope.engine.torch.distributions.relaxed import (
    ExpRelaxedCategorical,
    LogitRelaxedBernoulli,
    OneHotCategoricalStraightThrough,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from stridescope.engine.torch.distributions.special_shapes import (
    ContinuousBernoulli,
    LowRankMultivariateNormal,
    MixtureSameFamily,
    VonMises,
)
from stridescope.engine.torch.distributions.tails import GeneralizedPareto
from stridescope.engine.torch.distributions.transformed import (
    Gumbel,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    TransformedDistribution,
    Weibull,
)

for _transform in transforms.TRANSFORMS:
    globals()[_transform.__name__] = _transform
identity_transform = transforms.identity_transform

# The files that PyTorch has the classes in.
FILES: dict[type, str] = {
    Bernoulli: "bernoulli", Beta: "beta", Binomial: "binomial", Categorical: "categorical", Cauchy: "cauchy",
    Chi2: "chi2", ContinuousBernoulli: "continuous_bernoulli", Dirichlet: "dirichlet", Distribution: "distribution",
    ExponentialFamily: "exp_family", ExpRelaxedCategorical: "relaxed_categorical", Exponential: "exponential",
    FisherSnedecor: "fishersnedecor", Gamma: "gamma", GeneralizedPareto: "generalized_pareto",
    Geometric: "geometric", Gumbel: "gumbel", HalfCauchy: "half_cauchy", HalfNormal: "half_normal",
    Independent: "independent", InverseGamma: "inverse_gamma", Kumaraswamy: "kumaraswamy",
    LKJCholesky: "lkj_cholesky", Laplace: "laplace", LogNormal: "log_normal", LogisticNormal: "logistic_normal",
    LogitRelaxedBernoulli: "relaxed_bernoulli", LowRankMultivariateNormal: "lowrank_multivariate_normal",
    MixtureSameFamily: "mixture_same_family", Multinomial: "multinomial", MultivariateNormal: "multivariate_normal",
    NegativeBinomial: "negative_binomial", Normal: "normal", OneHotCategorical: "one_hot_categorical",
    OneHotCategoricalStraightThrough: "one_hot_categorical", Pareto: "pareto", Poisson: "poisson",
    RelaxedBernoulli: "relaxed_bernoulli", RelaxedOneHotCategorical: "relaxed_categorical", StudentT: "studentT",
    TransformedDistribution: "transformed_distribution", Uniform: "uniform", VonMises: "von_mises",
    Weibull: "weibull", Wishart: "wishart",
}  # fmt: skip
for _kind, _file in FILES.items():
    _kind.__module__ = f"torch.distributions.{_file}"
    write_out(_kind)

__getattr__ = missing_from("torch.distributions", __name__)
__all__ = [
    *sorted(kind.__name__ for kind in FILES if kind not in (ExpRelaxedCategorical, LogitRelaxedBernoulli)),
    *transforms.__all__, "biject_to", "constraints", "kl_divergence", "register_kl", "transform_to",
]  # fmt: skip

for _file in sorted(set(FILES.values()) - {"distribution"}):
    file_of(f"{__name__}.{_file}", {kind.__name__: kind for kind, file in FILES.items() if file == _file})
