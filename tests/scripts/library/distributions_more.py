"""Distributions: gradients of draws, transforms, registries, divergences, and what is refused."""

import itertools

import torch
import torch.distributions as D
from torch.distributions import constraints, transforms


def attempt(action):
    try:
        print("fine:", action())
    except Exception as error:
        print(type(error).__name__, str(error)[:200])


torch.manual_seed(0)
a = torch.tensor([0.3, 2.0, 9.0, 30.0], requires_grad=True)
b = torch.tensor([1.2, 0.6, 7.0, 3.0], requires_grad=True)
for make in (
    D.Gamma, D.Beta, D.FisherSnedecor, D.Weibull, D.InverseGamma, D.Kumaraswamy, D.LogNormal, D.Gumbel,
    lambda x, y: D.Dirichlet(torch.stack([x, y], -1)), lambda x, y: D.StudentT(x, y), lambda x, y: D.Chi2(x + y),
    lambda x, y: D.RelaxedBernoulli(y, logits=x), lambda x, y: D.Pareto(x, y), lambda x, y: D.HalfNormal(x * y),
):  # fmt: skip
    dist = make(a, b)
    drawn = dist.rsample()
    gradients = torch.autograd.grad((drawn * torch.arange(1.0, drawn.numel() + 1).view(drawn.shape)).sum(), [a, b], allow_unused=True)
    print(type(dist).__name__, drawn.detach(), *gradients)
    log_gradient = torch.autograd.grad(make(a, b).log_prob(drawn.detach()).sum(), [a, b], allow_unused=True)
    print("  ", *(["none"] if g is None else [f"{v:.3f}" for v in g.tolist()] for g in log_gradient))

x = torch.tensor([-1.5, 0.2, 0.9])
unit = torch.tensor([0.1, 0.6, 0.3])
for transform, value in (
    (transforms.ExpTransform(), x), (transforms.AffineTransform(1.0, -2.0), x), (transforms.SigmoidTransform(), x),
    (transforms.TanhTransform(), x), (transforms.SoftplusTransform(), x), (transforms.PowerTransform(2.0), x.abs()),
    (transforms.StickBreakingTransform(), x), (transforms.CorrCholeskyTransform(), x),
    (transforms.ComposeTransform([transforms.AffineTransform(0.5, 2.0), transforms.ExpTransform()]), x),
    (transforms.IndependentTransform(transforms.ExpTransform(), 1), x),
    (transforms.ReshapeTransform((3,), (3, 1)), x),
    (transforms.CatTransform([transforms.ExpTransform(), transforms.identity_transform], 0, [1, 2]), x),
    (transforms.CumulativeDistributionTransform(D.Normal(0.0, 1.0)), x),
):  # fmt: skip
    y = transform(value)
    print(type(transform).__name__, transform, y)
    attempt(lambda: transform.inv(y))
    attempt(lambda: transform.log_abs_det_jacobian(value, y))
    print("  ", transform.forward_shape((5, 3)), transform.bijective, transform.domain, transform.codomain)
flow = D.TransformedDistribution(D.Normal(torch.zeros(3), 1.0), [transforms.SigmoidTransform(), transforms.AffineTransform(-1.0, 2.0)])
print(flow.sample(), flow.log_prob(torch.tensor([0.1, -0.5, 0.8])), flow.cdf(torch.tensor([0.0, 0.0, 0.5])), flow.support)
for constraint in (
    constraints.positive, constraints.unit_interval, constraints.simplex, constraints.real_vector,
    constraints.interval(-1.0, 2.0), constraints.greater_than(3.0), constraints.less_than(0.0), constraints.corr_cholesky,
):  # fmt: skip
    y = D.biject_to(constraint)(x)
    print(constraint, y, constraint.check(y), D.transform_to(constraint)(x))
print(D.transform_to(constraints.lower_cholesky)(torch.arange(4.0).view(2, 2)))
attempt(lambda: D.biject_to(constraints.boolean))

families = [
    D.Normal(0.5, 1.2), D.Laplace(0.1, 0.8), D.Exponential(1.5), D.Gamma(2.0, 1.5), D.Beta(2.0, 3.0), D.Uniform(0.1, 0.9),
    D.Gumbel(0.2, 1.1), D.Pareto(0.05, 3.0), D.Bernoulli(0.3), D.Poisson(2.0), D.Geometric(0.3), D.LogNormal(0.0, 1.0),
    D.HalfNormal(1.0), D.Binomial(5, torch.tensor(0.3)), D.Cauchy(0.0, 1.0), D.ContinuousBernoulli(0.7),
    D.Dirichlet(torch.tensor([1.0, 2.0])), D.Categorical(unit), D.OneHotCategorical(unit),
]  # fmt: skip
others = [
    D.Normal(0.0, 1.0), D.Laplace(0.0, 1.0), D.Exponential(1.0), D.Gamma(1.0, 1.0), D.Beta(1.0, 2.0), D.Uniform(0.0, 1.0),
    D.Gumbel(0.0, 1.0), D.Pareto(0.02, 2.0), D.Bernoulli(0.5), D.Poisson(3.0), D.Geometric(0.5), D.LogNormal(1.0, 2.0),
    D.HalfNormal(2.0), D.Binomial(5, torch.tensor(0.5)), D.Cauchy(1.0, 2.0), D.ContinuousBernoulli(0.2),
    D.Dirichlet(torch.tensor([2.0, 2.0])), D.Categorical(unit.flip(0)), D.OneHotCategorical(unit.flip(0)),
]  # fmt: skip
for p, q in itertools.product(families, others):
    try:
        print(type(p).__name__, type(q).__name__, f"{D.kl_divergence(p, q).item():.4f}")
    except NotImplementedError:
        print(type(p).__name__, type(q).__name__, "none")
full = D.MultivariateNormal(torch.zeros(2), torch.eye(2) * 2)
low = D.LowRankMultivariateNormal(torch.ones(2), torch.ones(2, 1), torch.ones(2))
print([f"{abs(D.kl_divergence(p, q).item()):.4f}" for p, q in itertools.product((full, low), (full, low))])
mine = D.Independent(D.Gamma(torch.ones(3), torch.ones(3)), 1)
print(D.kl_divergence(mine, D.Independent(D.Gamma(torch.ones(3) * 2, torch.ones(3)), 1)))

attempt(lambda: D.Normal(0.0, -1.0))
attempt(lambda: D.HalfNormal(-1.0))
attempt(lambda: D.Gamma(torch.tensor([1.0, 0.0]), 1.0))
attempt(lambda: D.Beta(1.0, 1.0).log_prob(torch.tensor(1.5)))
attempt(lambda: D.Binomial(3, torch.tensor(1.5)))
attempt(lambda: D.Poisson(2.0).log_prob(torch.tensor(0.5)))
attempt(lambda: D.Dirichlet(torch.tensor(1.0)))
attempt(lambda: D.Bernoulli())
attempt(lambda: D.Multinomial(4, unit).log_prob(torch.tensor([1.0, 2.0, 2.0])))
attempt(lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0)))
attempt(lambda: D.MixtureSameFamily(D.Categorical(unit), D.Normal(torch.zeros(2), 1.0)))
attempt(lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), "exp"))
attempt(lambda: D.Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(3)))
attempt(lambda: D.Normal(0.0, 1.0).log_prob("one"))
attempt(lambda: D.Poisson(2.0).rsample())
attempt(lambda: D.Poisson(torch.tensor([2.0])).cdf(torch.tensor([1.0])))


class Doubled(D.Distribution):
    arg_constraints = {"base": constraints.real}
    has_rsample = True

    def __init__(self, base, validate_args=None):
        self.base = base
        super().__init__(base.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.base, 2 * self.base)

    def rsample(self, sample_shape=torch.Size()):
        return self.base * (1 + torch.rand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -self.base.log().expand(value.shape)


@D.register_kl(Doubled, D.Normal)
def _(p, q):
    return p.base * 0


doubled = Doubled(torch.tensor([1.0, 2.0]))
print(doubled, doubled.sample((2,)), doubled.log_prob(torch.tensor([1.5, 3.0])), D.kl_divergence(doubled, D.Normal(0.0, 1.0)))
attempt(lambda: doubled.log_prob(torch.tensor([5.0, 3.0])))
