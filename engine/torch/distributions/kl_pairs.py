"""KL divergences of the less common pairs.

Between different families, KL(p || q) is minus the entropy of p, less the mean of log q under p. For a normal,
exponential, gamma or uniform q that mean follows from the mean, the variance and the mean logarithm of p.
"""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch.distributions.continuous import Cauchy, Exponential, Laplace, Normal, Uniform
from stridescope.engine.torch.distributions.counts import Binomial, Poisson
from stridescope.engine.torch.distributions.discrete import Bernoulli, Geometric
from stridescope.engine.torch.distributions.distribution import ExponentialFamily, sum_rightmost
from stridescope.engine.torch.distributions.gammas import Beta, Dirichlet, Gamma
from stridescope.engine.torch.distributions.kl import FORMULAS, kl_divergence, register_kl
from stridescope.engine.torch.distributions.multivariate import MultivariateNormal
from stridescope.engine.torch.distributions.special_shapes import ContinuousBernoulli, LowRankMultivariateNormal
from stridescope.engine.torch.distributions.transformed import (
    EULER,
    Gumbel,
    HalfNormal,
    Pareto,
    TransformedDistribution,
)


def _infinite(like: Any) -> Any:
    return torch.full_like(like, math.inf)


# ---- within one family -----------------------------------------------------------------------------------------------


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    total = p.concentration.sum(-1)
    apart = total.lgamma() - q.concentration.sum(-1).lgamma()
    each = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    slopes = p.concentration.digamma() - total.digamma().unsqueeze(-1)
    return apart - each + ((p.concentration - q.concentration) * slopes).sum(-1)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    result = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    result[p.total_count > q.total_count] = math.inf
    return result


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    ours = p._log_constant() + torch.log1p(-p.probs)
    return p.mean * (p.logits - q.logits) + ours - q._log_constant() - torch.log1p(-q.probs)


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    powers = q.concentration * (p.rate / q.rate).log()
    apart = torch.lgamma(q.concentration) - torch.lgamma(p.concentration)
    slopes = (p.concentration - q.concentration) * torch.digamma(p.concentration)
    return powers + apart + slopes + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, ours, theirs = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    tail = torch.exp(theirs + (1 + ratio).lgamma() - ours)
    return -ratio.log() - theirs + ours + ratio * EULER + tail - (1 + EULER)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    result[p.scale < q.scale] = math.inf
    return result


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Any:
    if type(p) is not type(q):
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    ours = [each.detach().requires_grad_() for each in p._natural_params]
    normalizer = p._log_normalizer(*ours)
    gradients = torch.autograd.grad(normalizer.sum(), ours, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for mine, theirs, gradient in zip(ours, q._natural_params, gradients, strict=True):
        result = result - sum_rightmost((theirs - mine) * gradient, len(q.event_shape))
    return result


def _as_full(low_rank: Any) -> MultivariateNormal:
    return MultivariateNormal(low_rank.loc, scale_tril=low_rank.scale_tril, validate_args=False)


def _check_events(p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed"
        )


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Any:
    _check_events(p, q)
    both = [_as_full(each) if isinstance(each, LowRankMultivariateNormal) else each for each in (p, q)]
    return kl_divergence(*both)


# ---- between families, by moments ------------------------------------------------------------------------------------


def _log_of(x: Any) -> Any:
    return torch.special.xlogy(x, x)


def _mean_log(p: Any) -> Any:
    """The expected logarithm."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -p.rate.log() - EULER
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return (_log_of(p.high) - _log_of(p.low)) / (p.high - p.low) - 1


def _bounded_below(p: Any, q: Any, result: Any) -> Any:
    if isinstance(p, Uniform):
        result[p.low < 0] = math.inf
    return result


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Pareto, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    spread = p.variance + (p.mean - q.loc).pow(2)
    return -p.entropy() + 0.5 * (2 * math.pi * variance).log() + 0.5 * spread / variance


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Pareto, Exponential)
@register_kl(Uniform, Exponential)
def _to_exponential(p: Any, q: Any) -> Any:
    return _bounded_below(p, q, -p.entropy() - q.rate.log() + q.rate * p.mean)


@register_kl(Beta, Gamma)
@register_kl(Exponential, Gamma)
@register_kl(Pareto, Gamma)
@register_kl(Uniform, Gamma)
def _to_gamma(p: Any, q: Any) -> Any:
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    powers = (q.concentration - 1) * _mean_log(p)
    return _bounded_below(p, q, -p.entropy() + normalizer - powers + q.rate * p.mean)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_to_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    outside = (q.low > 0) | (q.high < 1)
    if isinstance(p, ContinuousBernoulli):  # PyTorch wants it strictly inside
        outside = (q.low >= 0) | (q.high <= 1)
    return torch.where(outside, torch.full_like(result, math.inf), result)


@register_kl(Uniform, Beta)
def _uniform_to_beta(p: Any, q: Any) -> Any:
    mirrored = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    powers = (q.concentration1 - 1) * _mean_log(p) + (q.concentration0 - 1) * _mean_log(mirrored)
    result = q._log_normalizer(q.concentration1, q.concentration0) - powers - p.entropy()
    result[(p.high > 1) | (p.low < 0)] = math.inf
    return result


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _to_continuous_bernoulli(p: Any, q: Any) -> Any:
    result = -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._log_constant()
    if isinstance(p, Uniform):
        result = torch.where((p.high >= 1) | (p.low <= 0), torch.full_like(result, math.inf), result)
    return result


@register_kl(Uniform, Pareto)
def _uniform_to_pareto(p: Any, q: Any) -> Any:
    result = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * _mean_log(p)
    result[p.low < q.scale] = math.inf
    return result


@register_kl(Bernoulli, Poisson)
def _bernoulli_to_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Normal, Laplace)
def _normal_to_laplace(p: Any, q: Any) -> Any:
    apart = p.loc - q.loc
    far = apart / p.scale
    distance = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * far.pow(2)) + apart * torch.erf(math.sqrt(0.5) * far)
    return -p.entropy() + torch.log(2 * q.scale) + distance / q.scale


def _to_gumbel(p: Any, q: Any, mean_exp: Any) -> Any:
    """``mean_exp`` is the mean of exp(-x / scale) under p."""
    tail = torch.exp(q.loc / q.scale) * mean_exp
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + tail


@register_kl(Normal, Gumbel)
def _normal_to_gumbel(p: Any, q: Any) -> Any:
    return _to_gumbel(p, q, torch.exp(-p.loc / q.scale + 0.5 * (p.scale / q.scale).pow(2)))


@register_kl(Exponential, Gumbel)
def _exponential_to_gumbel(p: Any, q: Any) -> Any:
    product = p.rate * q.scale
    return _to_gumbel(p, q, product / (product + 1))


@register_kl(Gamma, Gumbel)
def _gamma_to_gumbel(p: Any, q: Any) -> Any:
    return _to_gumbel(p, q, (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration))


@register_kl(Uniform, Gumbel)
def _uniform_to_gumbel(p: Any, q: Any) -> Any:
    ends = torch.exp(-p.low / q.scale) - torch.exp(-p.high / q.scale)
    return _to_gumbel(p, q, q.scale / (p.high - p.low) * ends)


# ---- where p has values that q can't have ----------------------------------------------------------------------------

_UNIT = (Beta, ContinuousBernoulli)
_NARROWER: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (*_UNIT, Pareto, Uniform),
    Gamma: (*_UNIT, Pareto, Uniform),
    Gumbel: (*_UNIT, Exponential, Gamma, Pareto, Uniform),
    Laplace: (*_UNIT, Exponential, Gamma, Pareto, Uniform),
    Normal: (*_UNIT, Exponential, Gamma, Pareto, Uniform),
    Pareto: (*_UNIT, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _never(p: Any, q: Any) -> Any:
    """Infinite: p has values that q can't have."""
    return _infinite(p.mean)


for _wide, _narrow_kinds in _NARROWER.items():
    for _narrow in _narrow_kinds:
        FORMULAS[_wide, _narrow] = _never
