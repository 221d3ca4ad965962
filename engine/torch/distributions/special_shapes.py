"""Distributions with shapes of their own: angles, mixtures, continuous coins, low-rank normal vectors."""

from __future__ import annotations

import functools
import math
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.tensor import Size
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.constraints import Constraint
from stridescope.engine.torch.distributions.discrete import Categorical, Odds, clamped, one_of, probability_of
from stridescope.engine.torch.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    broadcast_all,
    like,
    standard_normal,
)


class VonMises(Distribution):
    """Angles around ``loc``, like a normal variable on a circle; drawn in double precision by rejection."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    support = property(lambda self: constraints.real)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        shape = self.concentration
        bessel = torch.special.i0e(shape).log() + shape
        return shape * torch.cos(value - self.loc) - math.log(2 * math.pi) - bessel

    def _ratio(self) -> Any:
        """What the proposals' angles follow (Best and Fisher 1979)."""
        kappa = self.concentration.to(torch.double)
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return torch.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw, without gradients."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            loc, kappa, ratio = self.loc.to(torch.double), self.concentration.to(torch.double), self._ratio()
            angles = torch.empty(shape, dtype=torch.double, device=loc.device)
            done = torch.zeros(shape, dtype=torch.bool, device=loc.device)
            while not done.all():
                first, second, third = torch.rand((3, *shape), dtype=torch.double, device=loc.device).unbind()
                z = torch.cos(math.pi * first)
                f = (1 + ratio * z) / (ratio + z)
                c = kappa * (ratio - f)
                accept = ((c * (2 - c) - second) > 0) | ((c / second).log() + 1 - c >= 0)
                angles = torch.where(accept, (third - 0.5).sign() * f.acos(), angles)
                done = done | accept
            return ((angles + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self) -> Any:
        """The location, which is the circular mean."""
        return self.loc

    @property
    def mode(self) -> Any:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Any:
        """The circular variance."""
        return 1 - torch.special.i1e(self.concentration) / torch.special.i0e(self.concentration)


class MixtureSameFamily(Distribution):
    """One of several distributions of a kind, chosen by a Categorical; the last batch dim counts them."""

    arg_constraints: dict[str, Constraint] = {}

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        self._mixture_distribution: Any = mixture_distribution
        self._component_distribution: Any = component_distribution
        _check_mixture(mixture_distribution, component_distribution)
        self._num_component = component_distribution.batch_shape[-1]
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(component_distribution.batch_shape[:-1], event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        made = super().expand(batch_shape, _instance)
        made._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        made._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        return made

    @property
    def support(self) -> Constraint:
        """What the components allow."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def _shares(self) -> Any:
        """The components' probabilities, with a dim of 1 for every dim of an event."""
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return torch.sum(self._shares() * self._component_distribution.mean, dim=-1 - self._event_ndims)

    @property
    def variance(self) -> Any:
        """The mean of the components' variances, and the variance of their means."""
        axis, parts = -1 - self._event_ndims, self._component_distribution
        within = torch.sum(self._shares() * parts.variance, dim=axis)
        apart = (parts.mean - self.mean.unsqueeze(axis)).pow(2.0)
        return within + torch.sum(self._shares() * apart, dim=axis)

    def cdf(self, x: Any) -> Any:
        """The probability of less."""
        values = self._component_distribution.cdf(x.unsqueeze(-1 - self._event_ndims))
        return torch.sum(values * self._mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(x)
        parts = self._component_distribution.log_prob(x.unsqueeze(-1 - self._event_ndims))
        return torch.logsumexp(parts + torch.log_softmax(self._mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw a component, then its number."""
        with no_grad():
            shape, axis = Size(sample_shape), len(sample_shape) + len(self._batch_shape)
            which = self._mixture_distribution.sample(shape)
            drawn = self._component_distribution.sample(shape)
            event = Size((1,) * (self._event_ndims + 1))
            index = which.reshape(which.shape + event)
            index = index.repeat(Size((1,) * len(which.shape)) + Size((1,)) + self._event_shape)
            return torch.gather(drawn, axis, index).squeeze(axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"


def _check_mixture(mixture: Any, component: Any) -> None:
    ours, theirs = mixture.batch_shape, component.batch_shape[:-1]
    for mine, other in zip(reversed(ours), reversed(theirs), strict=False):
        if mine != 1 and other != 1 and mine != other:
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({ours}) is not compatible with "
                f"`component_distribution.batch_shape`({theirs})"
            )
    count, wanted = mixture.logits.shape[-1], component.batch_shape[-1]
    if count is not None and wanted is not None and count != wanted:
        raise ValueError(
            f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
            f"({wanted})"
        )


class ContinuousBernoulli(Odds, ExponentialFamily):
    """A coin toss stretched over [0, 1] (Loaiza-Ganem and Cunningham 2019); near 1/2 by Taylor expansions."""

    _mean_carrier_measure = 0
    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        one_of(probs, logits)
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        (self._param,) = broadcast_all(given)
        self._lims = lims
        self.__dict__[name] = self._param if name == "logits" else clamped(self._param)
        super().__init__(like(self._param, given), validate_args=validate_args)

    support = property(lambda self: constraints.unit_interval)

    @functools.cached_property
    def probs(self) -> Any:
        """The parameter as a probability."""
        return clamped(probability_of(self.logits))

    def _either(self, outside: Any, near: Any) -> Any:
        return torch.where(self._is_outside(), outside, near)

    def _is_outside(self) -> Any:
        return torch.max(torch.le(self.probs, self._lims[0]), torch.gt(self.probs, self._lims[1]))

    def _cut(self) -> Any:
        return torch.where(self._is_outside(), self.probs, self._lims[0] * torch.ones_like(self.probs))

    def _log_constant(self) -> Any:
        cut = self._cut()
        below = torch.where(torch.le(cut, 0.5), cut, torch.zeros_like(cut))
        above = torch.where(torch.ge(cut, 0.5), cut, torch.ones_like(cut))
        spread = torch.log(torch.abs(torch.log1p(-cut) - torch.log(cut)))
        side = torch.where(torch.le(cut, 0.5), torch.log1p(-2.0 * below), torch.log(2.0 * above - 1.0))
        square = torch.pow(self.probs - 0.5, 2)
        return self._either(spread - side, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * square) * square)

    @property
    def mean(self) -> Any:
        """The expected value."""
        cut, x = self._cut(), self.probs - 0.5
        far = cut / (2.0 * cut - 1.0) + 1.0 / (torch.log1p(-cut) - torch.log(cut))
        return self._either(far, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * torch.pow(x, 2)) * x)

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return torch.sqrt(self.variance)

    @property
    def variance(self) -> Any:
        """The variance."""
        cut, x = self._cut(), torch.pow(self.probs - 0.5, 2)
        log_ratio = torch.pow(torch.log1p(-cut) - torch.log(cut), 2)
        far = cut * (cut - 1.0) / torch.pow(1.0 - 2.0 * cut, 2) + 1.0 / log_ratio
        return self._either(far, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        toss = torch.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return -toss + self._log_constant()

    def cdf(self, value: Any) -> Any:
        """The probability of less."""
        self._validate_sample(value)
        cut = self._cut()
        far = (torch.pow(cut, value) * torch.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        inside = self._either(far, value)
        ended = torch.where(torch.ge(value, 1.0), torch.ones_like(value), inside)
        return torch.where(torch.le(value, 0.0), torch.zeros_like(value), ended)

    def icdf(self, value: Any) -> Any:
        """The quantile."""
        cut = self._cut()
        far = torch.log1p(-cut + value * (2.0 * cut - 1.0)) - torch.log1p(-cut)
        return self._either(far / (torch.log(cut) - torch.log1p(-cut)), value)

    def entropy(self) -> Any:
        """The entropy in nats."""
        zero, one = torch.log1p(-self.probs), torch.log(self.probs)
        return self.mean * (zero - one) - self._log_constant() - zero


class LowRankMultivariateNormal(Distribution):
    """Normal vectors whose covariance is ``cov_factor @ cov_factor.T`` and a diagonal."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        self._factor, self._diag = cov_factor, cov_diag.unsqueeze(-1)
        batch = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand((*batch, *event))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self.cov_diag = cov_diag.expand((*batch, *event))
        super().__init__(batch, event, validate_args=validate_args)
        scaled = self._factor.mT / self._diag.mT
        inner = torch.matmul(scaled, self._factor).contiguous()
        self._capacitance = torch.linalg.cholesky(
            inner + torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        batch, event = tuple(batch_shape), tuple(self._event_shape)
        return LowRankMultivariateNormal(
            self.loc.expand(batch + event),
            self.cov_factor.expand(batch + tuple(self.cov_factor.shape[-2:])),
            self.cov_diag.expand(batch + event),
            validate_args=False,
        )

    support = property(lambda self: constraints.real_vector)
    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @functools.cached_property
    def variance(self) -> Any:
        """The variance of each place."""
        return (self._factor.pow(2).sum(-1) + self._diag.squeeze(-1)).expand(self._batch_shape + self._event_shape)

    @functools.cached_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        matrix = torch.matmul(self._factor, self._factor.mT) + torch.diag_embed(self._diag.squeeze(-1))
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @functools.cached_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance, by Woodbury's identity."""
        scaled = self._factor.mT / self._diag.mT
        part = torch.linalg.solve_triangular(self._capacitance, scaled, upper=False)
        matrix = torch.diag_embed(self._diag.squeeze(-1).reciprocal()) - part.mT @ part
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @functools.cached_property
    def scale_tril(self) -> Any:
        """The lower root of the covariance."""
        return torch.linalg.cholesky(self.covariance_matrix)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        narrow = standard_normal(Size((*shape[:-1], self.cov_factor.shape[-1])), self.loc)
        wide = standard_normal(shape, self.loc)
        moved = torch.matmul(self._factor, narrow.unsqueeze(-1)).squeeze(-1)
        return self.loc + moved + self._diag.squeeze(-1).sqrt() * wide

    def _log_det(self) -> Any:
        halves = self._capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 2 * halves + self._diag.squeeze(-1).log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        apart, diag = value - self.loc, self._diag.squeeze(-1)
        inner = torch.matmul(self._factor.mT / self._diag.mT, apart.unsqueeze(-1))
        explained = torch.linalg.solve_triangular(self._capacitance, inner, upper=False).squeeze(-1).pow(2).sum(-1)
        distance = (apart.pow(2) / diag).sum(-1) - explained
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Any:
        """The entropy in nats."""
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
