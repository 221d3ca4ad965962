"""``kl_divergence``: how far one distribution is from another, in closed form."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch.distributions.continuous import Exponential, Laplace, Normal, Uniform
from stridescope.engine.torch.distributions.discrete import Bernoulli, Categorical, OneHotCategorical
from stridescope.engine.torch.distributions.distribution import Distribution, sum_rightmost
from stridescope.engine.torch.distributions.multivariate import Independent, MultivariateNormal, mahalanobis

Formula = Callable[[Any, Any], Any]
FORMULAS: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Decorates the formula for two classes; raises TypeError when one is no distribution."""
    for kind, name in ((type_p, "type_p"), (type_q, "type_q")):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def register(formula: Formula) -> Formula:
        FORMULAS[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """KL(p || q); raises NotImplementedError when no formula is known."""
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            if (formula := FORMULAS.get((kind_p, kind_q))) is not None:
                return formula(p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms[(q.probs == 0).expand_as(terms)] = math.inf
    terms[(p.probs == 0).expand_as(terms)] = 0
    return terms.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    softplus = importlib.import_module("stridescope.engine.torch.nn.functional").softplus
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones[q.probs == 0] = math.inf
    ones[p.probs == 0] = 0
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros[q.probs == 1] = math.inf
    zeros[p.probs == 1] = 0
    return ones + zeros


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    result[(q.low > p.low) | (q.high < p.high)] = math.inf
    return result


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * torch.exp(-apart / p.scale) - 1


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    ours, theirs = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    spread = torch.linalg.solve_triangular(theirs, ours, upper=False).pow(2).sum((-2, -1))
    distance = mahalanobis(theirs, q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + 0.5 * (spread + distance - p.event_shape[0])


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
