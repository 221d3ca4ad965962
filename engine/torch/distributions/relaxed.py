"""Continuous stand-ins for classes, whose draws have gradients (Maddison et al. 2016, Jang et al. 2016)."""

from __future__ import annotations

from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.discrete import (
    Categorical,
    Odds,
    OneHotCategorical,
    clamped,
    one_of,
)
from stridescope.engine.torch.distributions.distribution import Distribution, broadcast_all, like
from stridescope.engine.torch.distributions.transformed import TransformedDistribution
from stridescope.engine.torch.distributions.transforms import ExpTransform, SigmoidTransform


class LogitRelaxedBernoulli(Odds):
    """The log-odds of a relaxed coin toss."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        one_of(probs, logits)
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        (self._param,) = broadcast_all(given)
        self.__dict__[name] = self._param
        super().__init__(like(self._param, given), validate_args=validate_args)

    support = property(lambda self: constraints.real)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        probs = clamped(self.probs.expand(shape))
        drawn = clamped(torch.rand(shape, dtype=probs.dtype, device=probs.device))
        return (drawn.log() - (-drawn).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        apart = logits - value.mul(self.temperature)
        return self.temperature.log() + apart - 2 * apart.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A coin toss between 0 and 1, the nearer to an end the lower the temperature."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    support = property(lambda self: constraints.unit_interval)
    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class ExpRelaxedCategorical(Distribution):
    """The logarithms of a relaxed class."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical, self.temperature = Categorical(probs, logits), temperature
        event = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        made = super().expand(batch_shape, _instance)
        made._categorical = self._categorical.expand(batch_shape)
        return made

    support = property(lambda self: constraints.real_vector)
    param_shape = property(lambda self: self._categorical.param_shape)
    logits = property(lambda self: self._categorical.logits)
    probs = property(lambda self: self._categorical.probs)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        drawn = clamped(torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits + -((-(drawn.log())).log())) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        classes = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        scale = torch.full_like(self.temperature, float(classes)).lgamma() - self.temperature.log().mul(-(classes - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """A class as shares that sum to one, the nearer to one class the lower the temperature."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    support = property(lambda self: constraints.simplex)
    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A class as a vector with a 1, whose gradient is taken as that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw; the gradient goes straight to ``probs``."""
        drawn, probs = self.sample(sample_shape), self._categorical.probs
        return drawn + (probs - probs.detach())
