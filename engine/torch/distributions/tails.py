"""The generalised Pareto distribution: what lies beyond a threshold."""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.constraints import Constraint
from stridescope.engine.torch.distributions.distribution import Distribution, broadcast_all, like


class GeneralizedPareto(Distribution):
    """Values from ``loc`` on, whose density falls exponentially (``concentration`` 0), slower (above) or faster."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(like(self.loc, loc, scale, concentration), validate_args=validate_args)

    def _safe(self, nothing: Any) -> tuple[Any, Any]:
        """Where the concentration is ``nothing``, and the concentrations with 1 there, that may be divided by.

        In densities PyTorch compares with a 0 of the default dtype, and so refuses double precision.
        """
        zero = torch.isclose(self.concentration, nothing)
        return zero, torch.where(zero, torch.ones_like(self.concentration), self.concentration)

    def _scaled(self, value: Any) -> Any:
        return (value - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        scaled = self._scaled(value)
        zero, safe = self._safe(torch.tensor(0.0))
        power = 1 / safe + torch.ones_like(scaled)
        falling = torch.where(power == 0, power, power * torch.log1p(safe * scaled))
        return -self.scale.log() - torch.where(zero, scaled, falling)

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of more."""
        self._validate_sample(value)
        scaled = self._scaled(value)
        zero, safe = self._safe(torch.tensor(0.0))
        return torch.where(zero, -scaled, -torch.log1p(safe * scaled) / safe)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of the probability of less."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        """The probability of less."""
        return torch.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        zero, safe = self._safe(torch.zeros_like(self.concentration))
        left = torch.log1p(-value)
        curved = self.loc + self.scale / safe * torch.expm1(-safe * left)
        return torch.where(zero, self.loc - self.scale * left, curved)

    def _below(self, limit: float) -> tuple[Any, Any]:
        """Where the concentration is below a limit, and the concentrations with half of it elsewhere."""
        valid = self.concentration < limit
        return valid, torch.where(valid, self.concentration, limit / 2)

    @property
    def mean(self) -> Any:
        """The expected value; NaN for a concentration of 1 and more."""
        valid, safe = self._below(1)
        return torch.where(valid, self.loc + self.scale / (1 - safe), math.nan)

    @property
    def variance(self) -> Any:
        """The variance; NaN for a concentration of one half and more."""
        valid, safe = self._below(0.5)
        return torch.where(valid, self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), math.nan)

    def entropy(self) -> Any:
        """The entropy in nats."""
        return torch.broadcast_to(torch.log(self.scale) + self.concentration + 1, self._batch_shape)

    @property
    def mode(self) -> Any:
        """The location."""
        return self.loc

    @property
    def support(self) -> Constraint:
        """From the location on, up to an end where the concentration is negative."""
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, torch.where(self.concentration < 0, end, math.inf))
