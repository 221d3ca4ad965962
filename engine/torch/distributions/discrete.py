"""Distributions of classes and whole numbers."""

from __future__ import annotations

import functools
import importlib
import math
from numbers import Number
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.modes import enable_grad, no_grad
from stridescope.engine.tensor import Size
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.constraints import Constraint
from stridescope.engine.torch.distributions.distribution import Distribution, ExponentialFamily, broadcast_all


def _functional() -> Any:
    return importlib.import_module("stridescope.engine.torch.nn.functional")


def clamped(probs: Any) -> Any:
    """Probabilities strictly between 0 and 1."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def one_of(probs: Any, logits: Any) -> None:
    """Raise ValueError unless exactly one of them is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def odds_of(probs: Any) -> Any:
    """The log-odds of probabilities, with gradients even where they are asked for without."""
    with enable_grad():
        probs = clamped(probs)
        return torch.log(probs) - torch.log1p(-probs)


def probability_of(logits: Any) -> Any:
    """The probabilities of log-odds, with gradients even where they are asked for without."""
    with enable_grad():
        return torch.sigmoid(logits)


class Odds(Distribution):
    """A distribution that is given by a probability or by its log-odds, ``_param``; the other one is found when asked.

    Its ``__init__`` puts what was given into the instance under its own name.
    """

    _param: Any

    @functools.cached_property
    def logits(self) -> Any:
        """The log-odds."""
        return odds_of(self.probs)

    @functools.cached_property
    def probs(self) -> Any:
        """The probability."""
        return probability_of(self.logits)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        shape: Size = self._param.size()
        return shape


class _Binary(Odds):
    """Given by one probability, or by its log-odds."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    @in_each
    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        one_of(probs, logits)
        given = logits if probs is None else probs
        (self._param,) = broadcast_all(given)
        if probs is None:
            self.logits = self._param
        else:
            self.probs = self._param
        super().__init__(() if isinstance(given, Number) else self._param.size(), validate_args=validate_args)


class Bernoulli(_Binary, ExponentialFamily):
    """1 with probability ``probs``, else 0."""

    _mean_carrier_measure = 0
    has_enumerate_support = True

    @property
    def _natural_params(self) -> Any:
        return (torch.logit(self.probs),)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return torch.log1p(torch.exp(natural_params[0]))

    @property
    def support(self) -> Constraint:
        """0 and 1."""
        return constraints.boolean

    @property
    def mean(self) -> Any:
        """The probability."""
        return self.probs

    @property
    def mode(self) -> Any:
        """The more probable value; NaN when both are equally so."""
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = math.nan
        return mode

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw."""
        with no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -_functional().binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        """The entropy in nats."""
        return _functional().binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        """0 and 1."""
        values = torch.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values


class Geometric(_Binary):
    """How many failures come before the first success."""

    @property
    def support(self) -> Constraint:
        """Whole numbers from zero on."""
        return constraints.nonnegative_integer

    @property
    def mean(self) -> Any:
        """The expected value."""
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        """Zero."""
        return torch.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        """The variance."""
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw."""
        shape, tiny = self._extended_shape(sample_shape), torch.finfo(self.probs.dtype).tiny
        with no_grad():
            return (self.probs.new(shape).uniform_(tiny, 1).log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        """The entropy in nats."""
        return _functional().binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Categorical(Distribution):
    """A class, drawn with given probabilities (``probs`` need not sum to 1) or log-probabilities."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        one_of(probs, logits)
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = self._param = logits - logits.logsumexp(dim=-1, keepdim=True)
        else:
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    @functools.cached_property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        with enable_grad():
            return torch.log(clamped(self.probs))

    @functools.cached_property
    def probs(self) -> Any:
        """The probabilities."""
        with enable_grad():
            return self.logits.softmax(-1)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        shape: Size = self._param.size()
        return shape

    @property
    def support(self) -> Constraint:
        """The numbers of the classes."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Any:
        """Not a number: classes have no order."""
        return torch.full(self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device)

    variance = mean

    @property
    def mode(self) -> Any:
        """The most probable class."""
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw."""
        shape = Size(sample_shape)
        drawn = torch.multinomial(self.probs.reshape(-1, self._num_events), shape.numel(), True).T
        return drawn.reshape(self._extended_shape(shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        self._validate_sample(value)
        value, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        """The entropy in nats."""
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All classes."""
        values = torch.arange(self._num_events, dtype=torch.long, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values


class OneHotCategorical(Distribution):
    """Like Categorical, but a sample is a vector with a 1 at the class's place."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        made = super().expand(batch_shape, _instance)
        made._categorical = self._categorical.expand(batch_shape)
        return made

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def support(self) -> Constraint:
        """Vectors with one 1."""
        return constraints.one_hot

    @property
    def mean(self) -> Any:
        """The probabilities."""
        return self.probs

    @property
    def mode(self) -> Any:
        """A 1 at the most probable class."""
        most = self.probs.argmax(dim=-1)
        return _functional().one_hot(most, num_classes=self.probs.shape[-1]).to(self.probs)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def variance(self) -> Any:
        """The variance of each place."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw."""
        drawn = self._categorical.sample(sample_shape)
        return _functional().one_hot(drawn, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        """The entropy in nats."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        """All vectors with one 1."""
        count = self._event_shape[0]
        values = torch.eye(count, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view((count,) + (1,) * len(self._batch_shape) + (count,))
        return values.expand((count, *self._batch_shape, count)) if expand else values
