"""Distributions of single real numbers."""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.constraints import Constraint
from stridescope.engine.torch.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    broadcast_all,
    like,
    standard_normal,
)


class _LocScale(Distribution):
    """A shape that is moved by ``loc`` and stretched by ``scale``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    has_rsample = True

    @in_each
    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(like(self.loc, loc, scale), validate_args=validate_args)

    @property
    def support(self) -> Constraint:
        """All numbers."""
        return constraints.real

    @property
    def mean(self) -> Any:
        """The location."""
        return self.loc

    @property
    def mode(self) -> Any:
        """The location."""
        return self.loc


class Normal(_LocScale, ExponentialFamily):
    """The normal distribution."""

    _mean_carrier_measure = 0

    @property
    def _natural_params(self) -> Any:
        return (self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal())

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        return -0.25 * x.pow(2) / y + 0.5 * torch.log(-math.pi / y)

    @property
    def stddev(self) -> Any:
        """The scale."""
        return self.scale

    @property
    def variance(self) -> Any:
        """The square of the scale."""
        return self.stddev.pow(2)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw, without gradients."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return torch.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        return self.loc + standard_normal(self._extended_shape(sample_shape), self.loc) * self.scale

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        distance = (value - self.loc) ** 2
        return -distance / (2 * self.scale**2) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Any) -> Any:
        """The probability of less."""
        self._validate_sample(value)
        return 0.5 * (1 + torch.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        """The entropy in nats."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + torch.log(self.scale)


class Laplace(_LocScale):
    """Two exponentials back to back."""

    @property
    def variance(self) -> Any:
        """The variance."""
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return (2**0.5) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        drawn = self.loc.new(shape).uniform_(torch.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * drawn.sign() * torch.log1p(-drawn.abs())

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        return -torch.log(2 * self.scale) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        """The probability of less."""
        self._validate_sample(value)
        apart = value - self.loc
        return 0.5 - 0.5 * apart.sign() * torch.expm1(-apart.abs() / self.scale)

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        apart = value - 0.5
        return self.loc - self.scale * apart.sign() * torch.log1p(-2 * apart.abs())

    def entropy(self) -> Any:
        """The entropy in nats."""
        return 1 + torch.log(2 * self.scale)


class Cauchy(_LocScale):
    """The ratio of two normal variables; it has no mean."""

    @property
    def mean(self) -> Any:
        """Not a number."""
        return torch.full(self._extended_shape(), math.nan, dtype=self.loc.dtype, device=self.loc.device)

    @property
    def variance(self) -> Any:
        """Infinite."""
        return torch.full(self._extended_shape(), math.inf, dtype=self.loc.dtype, device=self.loc.device)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        return self.loc + self.loc.new(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Any) -> Any:
        """The probability of less."""
        self._validate_sample(value)
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        """The entropy in nats."""
        return math.log(4 * math.pi) + self.scale.log()


class Uniform(Distribution):
    """All values between ``low`` and ``high`` are equally probable."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(like(self.low, low, high), validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Constraint]:  # type: ignore[override]
        """The bounds in order."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @property
    def support(self) -> Constraint:
        """Between the bounds."""
        return constraints.interval(self.low, self.high)

    @property
    def mode(self) -> Any:
        """NaN: all values are equally probable."""
        return math.nan * self.high

    @property
    def mean(self) -> Any:
        """The middle."""
        return (self.high + self.low) / 2

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Any:
        """The variance."""
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        drawn = torch.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        inside = self.low.le(value).type_as(self.low).mul(self.high.gt(value).type_as(self.low))
        return torch.log(inside) - torch.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        """The probability of less."""
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        """The entropy in nats."""
        return torch.log(self.high - self.low)


class Exponential(ExponentialFamily):
    """The time until something happens that happens ``rate`` times per unit of time."""

    _mean_carrier_measure = 0
    arg_constraints = {"rate": constraints.positive}
    has_rsample = True

    @property
    def _natural_params(self) -> Any:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return -torch.log(-natural_params[0])

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(like(self.rate, rate), validate_args=validate_args)

    @property
    def support(self) -> Constraint:
        """Numbers from zero on."""
        return constraints.nonnegative

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.rate.reciprocal()

    @property
    def mode(self) -> Any:
        """Zero."""
        return torch.zeros_like(self.rate)

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.rate.reciprocal()

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        return self.rate.new(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Any:
        """The probability of less."""
        self._validate_sample(value)
        return 1 - torch.exp(-self.rate * value)

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> Any:
        """The entropy in nats."""
        return 1.0 - torch.log(self.rate)
