"""Distributions of counts: Poisson, Binomial, NegativeBinomial, Multinomial.

Numbers are those of PyTorch on the CPU from the same seed.
"""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.tensor import Size
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.discrete import Categorical, Odds, one_of
from stridescope.engine.torch.distributions.distribution import Distribution, ExponentialFamily, broadcast_all, like
from stridescope.engine.torch.distributions.gammas import Gamma


class Poisson(ExponentialFamily):
    """How often something happens that happens ``rate`` times on average."""

    arg_constraints = {"rate": constraints.nonnegative}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(like(self.rate, rate), validate_args=validate_args)

    support = property(lambda self: constraints.nonnegative_integer)

    @property
    def mean(self) -> Any:
        """The rate."""
        return self.rate

    @property
    def mode(self) -> Any:
        """The most probable count."""
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        """The rate."""
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw."""
        with no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> Any:
        return (torch.log(self.rate),)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return torch.exp(natural_params[0])


class _Counted(Odds):
    """Given by a count, and one probability or its log-odds."""

    @in_each
    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        one_of(probs, logits)
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        self.total_count, self._param = broadcast_all(total_count, given)
        self.__dict__[name] = self._param
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)


class Binomial(_Counted):
    """How many of ``total_count`` trials succeed."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    support = property(lambda self: constraints.integer_interval(0, self.total_count))

    @property
    def mean(self) -> Any:
        """The expected count."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        """The most probable count."""
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        self._validate_sample(value)
        count, logits = self.total_count, self.logits
        ways = [torch.lgamma(number + 1) for number in (count, value, count - value)]
        above = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2
        normalizer = count * above + count * torch.log1p(torch.exp(-torch.abs(logits))) - ways[0]
        return value * logits - ways[1] - ways[2] - normalizer

    def _one_count(self, where: str) -> int:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{where}`.")
        return count

    def entropy(self) -> Any:
        """The entropy in nats, summed over all counts."""
        self._one_count("entropy")
        logarithms = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(logarithms) * logarithms).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All counts."""
        count = self._one_count("enumerate_support")
        values = torch.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values


class NegativeBinomial(_Counted):
    """How many trials succeed before ``total_count`` have failed."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip

    support = property(lambda self: constraints.nonnegative_integer)

    @property
    def mean(self) -> Any:
        """The expected count."""
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self) -> Any:
        """The most probable count."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.mean / torch.sigmoid(-self.logits)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw: a Poisson count whose rate is a gamma number."""
        with no_grad():
            rates = Gamma(self.total_count, torch.exp(-self.logits), validate_args=False)
            return torch.poisson(rates.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        self._validate_sample(value)
        count, logsigmoid = self.total_count, torch.nn.functional.logsigmoid
        powers = count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = -torch.lgamma(count + value) + torch.lgamma(1.0 + value) + torch.lgamma(count)
        return powers - ways.masked_fill(count + value == 0.0, 0.0)


class Multinomial(Distribution):
    """How often each class comes up in ``total_count`` draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        event = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        made = super().expand(batch_shape, _instance)
        made._categorical = self._categorical.expand(batch_shape)
        return made

    support = property(lambda self: constraints.multinomial(self.total_count))
    logits = property(lambda self: self._categorical.logits)
    probs = property(lambda self: self._categorical.probs)
    param_shape = property(lambda self: self._categorical.param_shape)

    @property
    def mean(self) -> Any:
        """The expected counts."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        """The variance of each count."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw."""
        with no_grad():
            drawn = self._categorical.sample(Size((self.total_count, *sample_shape))).movedim(0, -1)
            counts = drawn.new(self._extended_shape(sample_shape)).zero_()
            counts.scatter_add_(-1, drawn, torch.ones_like(drawn))
            return counts.type_as(self.probs)

    def entropy(self) -> Any:
        """The entropy in nats."""
        count = torch.tensor(self.total_count)
        ordered = count * self._categorical.entropy() - torch.lgamma(count + 1)
        values = self._binomial.enumerate_support(expand=False)[1:]
        shares = torch.exp(self._binomial.log_prob(values))
        return ordered + (shares * torch.lgamma(values + 1)).sum([0, -1])

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=torch.contiguous_format)
        ways = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        logits[(value == 0) & (logits == -math.inf)] = 0
        return ways + (logits * value).sum(-1)
