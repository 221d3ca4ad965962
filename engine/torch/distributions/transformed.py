"""Distributions of what maps make of other distributions' numbers."""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.tensor import Size
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.constraints import Constraint
from stridescope.engine.torch.distributions.continuous import Cauchy, Exponential, Normal, Uniform
from stridescope.engine.torch.distributions.distribution import Distribution, broadcast_all, sum_rightmost
from stridescope.engine.torch.distributions.gammas import Gamma
from stridescope.engine.torch.distributions.multivariate import Independent
from stridescope.engine.torch.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
    Transform,
)

EULER = 0.5772156649015329


class TransformedDistribution(Distribution):
    """What a map, or several one after another, make of a base distribution's numbers."""

    arg_constraints: dict[str, Constraint] = {}

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        self.transforms: list[Transform] = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(each, Transform) for each in self.transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        whole = ComposeTransform(self.transforms)
        base, after = _fitted(base_distribution, whole)
        self.base_dist: Any = base
        grown = whole.codomain.event_dim - whole.domain.event_dim
        dims = max(whole.codomain.event_dim, len(base_distribution.event_shape) + grown)
        cut = len(after) - dims
        super().__init__(after[:cut], after[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        made = super().expand(batch_shape, _instance)
        shape = Size(batch_shape) + self._event_shape
        for each in reversed(self.transforms):
            shape = each.inverse_shape(shape)
        made.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return made

    @property
    def support(self) -> Constraint | None:
        """What the last map can give."""
        if not self.transforms:
            return self.base_dist.support  # type: ignore[no-any-return]
        support: Constraint = self.transforms[-1].codomain
        more = len(self._event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """As the base."""
        return bool(self.base_dist.has_rsample)

    def _mapped(self, x: Any) -> Any:
        for each in self.transforms:
            x = each(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw, without gradients."""
        with no_grad():
            return self._mapped(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        return self._mapped(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density: the base's, less what the maps stretch."""
        self._validate_sample(value)
        dims, result, y = len(self._event_shape), 0.0, value
        for each in reversed(self.transforms):
            x = each.inv(y)
            dims += each.domain.event_dim - each.codomain.event_dim
            result = result - sum_rightmost(each.log_abs_det_jacobian(x, y), dims - each.domain.event_dim)
            y = x
        return result + sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _turned(self, value: Any) -> Any:
        """A probability from the other side, where the maps fall."""
        sign: Any = 1
        for each in self.transforms:
            sign = sign * each.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        """The probability of less."""
        for each in reversed(self.transforms):
            value = each.inv(value)
        self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return self._mapped(self.base_dist.icdf(self._turned(value)))


def _fitted(base: Distribution, whole: ComposeTransform) -> tuple[Distribution, Any]:
    """The base with the batch and event dims that the maps need, and the shape of their result."""
    shape, event_dims = base.batch_shape + base.event_shape, len(base.event_shape)
    needed = whole.domain.event_dim
    if len(shape) < needed:
        raise ValueError(f"base_distribution needs to have shape with size at least {needed}, but got {shape}.")
    after = Size(whole.forward_shape(shape))
    before = Size(whole.inverse_shape(after))
    if shape != before:
        base = base.expand(before[: len(before) - event_dims])
    if needed > event_dims:
        base = Independent(base, needed - event_dims)
    return base, after


class LogNormal(TransformedDistribution):
    """The exponential of a normal variable."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    support = property(lambda self: constraints.positive)
    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Any:
        """The most probable value."""
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Any:
        """The variance."""
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Any:
        """The entropy in nats."""
        return self.base_dist.entropy() + self.loc


class Gumbel(TransformedDistribution):
    """The largest of many variables."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = torch.finfo(self.loc.dtype)
        numbers = isinstance(loc, (int, float)) and isinstance(scale, (int, float))
        ends = (limits.tiny, 1 - limits.eps)
        low, high = ends if numbers else tuple(torch.full_like(self.loc, end) for end in ends)
        steps = [
            ExpTransform().inv, AffineTransform(loc=0, scale=-torch.ones_like(self.scale)), ExpTransform().inv,
            AffineTransform(loc=loc, scale=-self.scale),
        ]  # fmt: skip
        super().__init__(Uniform(low, high, validate_args=validate_args), steps, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        return Gumbel(self.loc.expand(batch_shape), self.scale.expand(batch_shape), validate_args=False)

    support = property(lambda self: constraints.real)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Any:
        """The location."""
        return self.loc

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.stddev.pow(2)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self) -> Any:
        """The entropy in nats."""
        return self.scale.log() + (1 + EULER)


class _Half(TransformedDistribution):
    """The absolute value of a symmetric variable around zero."""

    arg_constraints = {"scale": constraints.positive}
    _kind: Any

    @in_each
    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(type(self)._kind(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    support = property(lambda self: constraints.nonnegative)
    scale = property(lambda self: self.base_dist.scale)

    @property
    def mode(self) -> Any:
        """Zero."""
        return torch.zeros_like(self.scale)

    @in_each
    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        return torch.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    @in_each
    def cdf(self, value: Any) -> Any:
        """The probability of less."""
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    @in_each
    def icdf(self, prob: Any) -> Any:
        """The quantile."""
        return self.base_dist.icdf((prob + 1) / 2)

    @in_each
    def entropy(self) -> Any:
        """The entropy in nats."""
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a normal variable."""

    _kind = Normal

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.scale.pow(2) * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute value of a Cauchy variable."""

    _kind = Cauchy

    @property
    def mean(self) -> Any:
        """Infinite."""
        return torch.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self) -> Any:
        """Infinite."""
        return self.base_dist.variance


class Pareto(TransformedDistribution):
    """The lengths of a tail that begins at ``scale`` and falls with the power ``alpha``."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        steps = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(Exponential(self.alpha, validate_args=validate_args), steps, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        return Pareto(self.scale.expand(batch_shape), self.alpha.expand(batch_shape), validate_args=False)

    support = property(lambda self: constraints.greater_than_eq(self.scale))

    @property
    def mean(self) -> Any:
        """The expected value; infinite for ``alpha`` up to 1."""
        alpha = self.alpha.clamp(min=1)
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Any:
        """Where the tail begins."""
        return self.scale

    @property
    def variance(self) -> Any:
        """The variance; infinite for ``alpha`` up to 2."""
        alpha = self.alpha.clamp(min=2)
        return self.scale.pow(2) * alpha / ((alpha - 1).pow(2) * (alpha - 2))

    def entropy(self) -> Any:
        """The entropy in nats."""
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """Times until failure, at a rate that changes with the power ``concentration - 1`` of time."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        steps = [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        return Weibull(self.scale.expand(batch_shape), self.concentration.expand(batch_shape), validate_args=False)

    support = property(lambda self: constraints.positive)

    def _moment(self, order: int) -> Any:
        return torch.lgamma(1 + order * self.concentration_reciprocal)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.scale * torch.exp(self._moment(1))

    @property
    def mode(self) -> Any:
        """The most probable value."""
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.scale.pow(2) * (torch.exp(self._moment(2)) - torch.exp(2 * self._moment(1)))

    def entropy(self) -> Any:
        """The entropy in nats."""
        shape = self.concentration_reciprocal
        return EULER * (1 - shape) + torch.log(self.scale * shape) + 1


class Kumaraswamy(TransformedDistribution):
    """Numbers between 0 and 1, much like those of Beta, with a cumulative function in closed form."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros, ones = (torch.full_like(self.concentration0, end) for end in (0, 1))
        steps = [
            PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]  # fmt: skip
        super().__init__(Uniform(zeros, ones, validate_args=validate_args), steps, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        ends = (self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape))
        return Kumaraswamy(*ends, validate_args=False)

    support = property(lambda self: constraints.unit_interval)

    def _moment(self, order: int) -> Any:
        first = 1 + order / self.concentration1
        zero = self.concentration0
        return zero * torch.exp(torch.lgamma(first) + torch.lgamma(zero) - torch.lgamma(first + zero))

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self._moment(1)

    @property
    def mode(self) -> Any:
        """The most probable value; NaN where both ends are."""
        zero, one = self.concentration0, self.concentration1
        logarithm = zero.reciprocal() * (-zero).log1p() - (-zero * one).log1p()
        logarithm[(zero < 1) | (one < 1)] = math.nan
        return logarithm.exp()

    @property
    def variance(self) -> Any:
        """The variance."""
        return self._moment(2) - torch.pow(self.mean, 2)

    def entropy(self) -> Any:
        """The entropy in nats."""
        zero, one = self.concentration0, self.concentration1
        harmonic = torch.digamma(zero + 1) + EULER
        return (1 - zero.reciprocal()) + (1 - one.reciprocal()) * harmonic - torch.log(one) - torch.log(zero)


class InverseGamma(TransformedDistribution):
    """One over a gamma variable."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    support = property(lambda self: constraints.positive)
    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)

    @property
    def mean(self) -> Any:
        """The expected value; infinite for a concentration up to 1."""
        return torch.where(self.concentration > 1, self.rate / (self.concentration - 1), torch.inf)

    @property
    def mode(self) -> Any:
        """The most probable value."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        """The variance; infinite for a concentration up to 2."""
        shape = self.concentration
        finite = self.rate.square() / ((shape - 1).square() * (shape - 2))
        return torch.where(shape > 2, finite, torch.inf)

    def entropy(self) -> Any:
        """The entropy in nats."""
        shape = self.concentration
        return shape + self.rate.log() + shape.lgamma() - (1 + shape) * shape.digamma()


class LogisticNormal(TransformedDistribution):
    """Shares of a whole: a normal vector, broken as a stick."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    support = property(lambda self: constraints.simplex)
    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)
