"""Every distribution: samples from a seed, log densities, moments, entropy, cumulative functions, gradients."""

import torch
import torch.distributions as D

torch.manual_seed(0)
t = torch.tensor
positive, other = t([0.5, 2.0, 11.0]), t([1.5, 0.7, 4.0])
probs = t([0.2, 0.5, 0.3])
CASES = {
    "Normal": D.Normal(t([0.0, 1.0]), t([1.0, 2.0])), "LogNormal": D.LogNormal(0.3, t([0.5, 1.0])),
    "Laplace": D.Laplace(0.5, 2.0), "Cauchy": D.Cauchy(t([0.0]), t([1.5])), "Gumbel": D.Gumbel(t([1.0]), t([2.0])),
    "Uniform": D.Uniform(-1.0, t([1.0, 3.0])), "Exponential": D.Exponential(positive),
    "Gamma": D.Gamma(positive, other), "Beta": D.Beta(positive, other), "Beta numbers": D.Beta(0.4, 3),
    "Dirichlet": D.Dirichlet(t([[0.5, 1.0, 3.0], [4.0, 2.0, 9.0]])), "Chi2": D.Chi2(t([1.0, 5.0])),
    "StudentT": D.StudentT(t([0.8, 1.5, 7.0]), 1.0, 2.0), "FisherSnedecor": D.FisherSnedecor(t([3.0]), t([6.0])),
    "HalfNormal": D.HalfNormal(t([1.0, 2.0])), "HalfCauchy": D.HalfCauchy(t([1.0])),
    "Pareto": D.Pareto(t([1.0, 2.0]), t([0.8, 3.0])), "Weibull": D.Weibull(t([1.0, 2.0]), t([1.5, 3.0])),
    "Kumaraswamy": D.Kumaraswamy(t([2.0]), t([3.0])), "InverseGamma": D.InverseGamma(t([3.0, 0.9]), t([2.5, 2.0])),
    "LogisticNormal": D.LogisticNormal(t([0.0, 1.0]), t([1.0, 0.5])), "VonMises": D.VonMises(t([0.3]), t([4.0])),
    "ContinuousBernoulli": D.ContinuousBernoulli(t([0.2, 0.5, 0.9])),
    "RelaxedBernoulli": D.RelaxedBernoulli(t([0.7]), probs=t([0.3, 0.6])),
    "RelaxedOneHot": D.RelaxedOneHotCategorical(t([0.8]), probs=probs),
    "MultivariateNormal": D.MultivariateNormal(t([1.0, -1.0]), t([[2.0, 0.3], [0.3, 1.0]])),
    "LowRank": D.LowRankMultivariateNormal(t([1.0, 0.0, 2.0]), t([[1.0], [0.5], [0.2]]), t([1.0, 2.0, 0.5])),
    "Independent": D.Independent(D.Normal(torch.zeros(2, 3), torch.ones(2, 3)), 1),
    "Mixture": D.MixtureSameFamily(D.Categorical(probs), D.Normal(t([-1.0, 0.0, 2.0]), t([0.5, 1.0, 0.2]))),
    "Bernoulli": D.Bernoulli(logits=t([-1.0, 0.0, 2.0])), "Geometric": D.Geometric(t([0.3, 0.8])),
    "Binomial": D.Binomial(t([5.0, 40.0]), probs=t([0.3, 0.7])), "Poisson": D.Poisson(t([0.5, 4.0, 30.0])),
    "NegativeBinomial": D.NegativeBinomial(t([3.0]), logits=t([0.4])), "Multinomial": D.Multinomial(6, probs),
    "Categorical": D.Categorical(logits=t([[0.1, 0.5, -1.0], [2.0, 0.0, 0.0]])), "OneHot": D.OneHotCategorical(probs),
    "StraightThrough": D.OneHotCategoricalStraightThrough(probs),
}  # fmt: skip


def told(name, action):
    try:
        value = action()
        single = isinstance(value, torch.Tensor) and value.dim() == 0
        print(f"  {name}: {value.item():.4f}" if single else f"  {name}: {value}")
    except Exception as error:
        print(f"  {name}: {type(error).__name__} {str(error)[:60]}")


for name, dist in CASES.items():
    print(name, dist)
    torch.manual_seed(1)
    sample = dist.sample((2,))
    print("  sample", sample, tuple(dist.batch_shape), tuple(dist.event_shape))
    print("  log_prob", dist.log_prob(sample))
    for what in ("mean", "mode", "variance", "stddev"):
        told(what, lambda: getattr(dist, what))
    told("entropy", dist.entropy)
    told("cdf", lambda: dist.cdf(sample))
    told("icdf", lambda: dist.icdf(torch.full(sample.shape, 0.3)))
    told("support", lambda: type(dist.support).__name__)
    told("expand", lambda: dist.expand((4, *dist.batch_shape)).sample().shape)
    told("enumerate", lambda: dist.enumerate_support().shape)
    if dist.has_rsample:
        told("rsample", lambda: dist.rsample((3,)).sum())
