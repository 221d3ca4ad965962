"""Wishart, LKJCholesky and GeneralizedPareto: samples, densities, moments, gradients and refusals."""

import warnings

import torch
from torch import distributions as D

torch.manual_seed(3)
warnings.simplefilter("ignore")
matrix = torch.tensor([[2.0, 0.3], [0.3, 1.0]])
root = torch.linalg.cholesky(matrix)


def tried(what):
    try:
        print(what())
    except Exception as error:
        print(type(error).__name__, error)


forms = (
    D.Wishart(4.0, matrix), D.Wishart(torch.tensor(5.5), precision_matrix=matrix), D.Wishart(3, scale_tril=root),
    D.Wishart(torch.tensor([3.0, 6.0]), matrix.expand(2, 2, 2)), D.Wishart(4.0, matrix).expand((3,)),
    D.Wishart(torch.tensor([7.5, 4.0]).double(), torch.eye(3).double()),
)  # fmt: skip
for one in forms:
    print(one, one.batch_shape, one.event_shape)
    print(one.sample(), one.sample((2,)).shape)
    drawn = one.rsample((2, 1))
    print(drawn, one.log_prob(drawn), one.entropy(), D.ExponentialFamily.entropy(one))
    for name in ("mean", "mode", "variance", "stddev", "precision_matrix", "scale_tril", "covariance_matrix"):
        print(name, getattr(one, name))
leaf = matrix.clone().requires_grad_()
df = torch.tensor(4.0, requires_grad=True)
torch.manual_seed(0)
one = D.Wishart(df, leaf)
one.log_prob(one.sample()).backward()
print(leaf.grad, df.grad)
one = D.Wishart(df, leaf)
one.rsample().sum().backward()
print(leaf.grad, df.grad, D.Wishart(df, leaf).rsample(max_try_correction=0).shape)
for make in (
    lambda: D.Wishart(1.0, matrix), lambda: D.Wishart(4.0), lambda: D.Wishart(4.0, matrix, matrix),
    lambda: D.Wishart(4.0, torch.ones(2)), lambda: D.Wishart(4.0, -matrix), lambda: one.log_prob(-matrix),
    lambda: D.Wishart(4.0, scale_tril=matrix), lambda: D.Wishart(torch.tensor([[1.5]]), matrix).df,
):  # fmt: skip
    tried(make)
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    D.Wishart(1.5, matrix).sample()
print([str(w.message) for w in heard])

for one in (D.LKJCholesky(3), D.LKJCholesky(2, 0.5), D.LKJCholesky(4, torch.tensor([0.7, 3.0])),
            D.LKJCholesky(3, 2.0).expand((2,)), D.LKJCholesky(3, torch.tensor(1.5).double())):  # fmt: skip
    print(one, one.batch_shape, one.event_shape, one.support)
    drawn = one.sample((2,))
    print(one.sample(), drawn, one.log_prob(drawn))
eta = torch.tensor(1.2, requires_grad=True)
D.LKJCholesky(3, eta).log_prob(D.LKJCholesky(3).sample()).backward()
print(eta.grad)
for make in (
    lambda: D.LKJCholesky(1), lambda: D.LKJCholesky(3, -1.0), lambda: D.LKJCholesky(3).log_prob(torch.ones(3, 3)),
    lambda: D.LKJCholesky(3).mean, lambda: D.LKJCholesky(3).rsample(),
):  # fmt: skip
    tried(make)

concentrations = torch.tensor([-1.0, -0.3, 0.0, 0.2, 0.6, 1.0, 1.5], requires_grad=True)
for one in (D.GeneralizedPareto(0.5, 2.0, concentrations), D.GeneralizedPareto(0.1, 2.0, 0.4),
            D.GeneralizedPareto(torch.tensor([0.0]), torch.tensor([1.0]), torch.tensor([0.0])).expand((2, 1)),
            D.GeneralizedPareto(torch.zeros(2), 1.0, -0.5)):  # fmt: skip
    print(one, one.batch_shape, one.support)
    drawn = one.rsample((2,))
    print(drawn, one.log_prob(drawn), one.cdf(drawn), one.log_cdf(drawn), one.log_survival_function(drawn))
    print(one.mean, one.variance, one.stddev, one.mode, one.entropy(), one.icdf(torch.tensor(0.25)))
one = D.GeneralizedPareto(0.5, 2.0, concentrations)
one.log_prob(one.sample()).sum().backward()
print(concentrations.grad)
one.rsample().sum().backward()
print(concentrations.grad)
for make in (
    lambda: D.GeneralizedPareto(0.0, -1.0, 0.1), lambda: D.GeneralizedPareto(0.0, 1.0, 0.1).log_prob(torch.tensor(-1.0)),
    lambda: D.GeneralizedPareto(torch.zeros(2).double(), 1.0, 0.1).log_prob(torch.ones(2).double()),
    lambda: D.GeneralizedPareto(torch.zeros(2).double(), 1.0, 0.1).icdf(torch.tensor(0.5)),
    lambda: D.GeneralizedPareto("a", 1.0, 0.1), lambda: D.GeneralizedPareto(0.0, 1.0, -0.5).cdf(torch.tensor(3.0)),
):  # fmt: skip
    tried(make)
print(D.Wishart.__module__, D.LKJCholesky.__module__, D.GeneralizedPareto.__module__)
print(sorted(n for n in ("Wishart", "LKJCholesky", "GeneralizedPareto") if n in D.__all__))
