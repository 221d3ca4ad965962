"""``Distribution``: what all probability distributions share."""

from __future__ import annotations

import warnings
from numbers import Number
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.tensor import Size, Tensor
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.constraints import Constraint


def broadcast_all(*values: Any) -> list[Tensor]:
    """Numbers and tensors as tensors of one shape; raises ValueError for anything else."""
    if not all(isinstance(value, (Tensor, Number)) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    first = next((value for value in values if isinstance(value, Tensor)), None)
    like = {"dtype": torch.get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
    tensors = [value if isinstance(value, Tensor) else torch.tensor(value, **like) for value in values]
    return list(torch.broadcast_tensors(*tensors))


def standard_normal(shape: Size, like: Tensor) -> Tensor:
    """Numbers of the normal distribution."""
    drawn: Tensor = torch.empty(shape, dtype=like.dtype, device=like.device).normal_()
    return drawn


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """The sum over the last ``dims`` dims."""
    if dims == 0:
        return value
    total: Tensor = value.reshape(value.shape[:-dims] + (-1,)).sum(-1)
    return total


class Distribution:
    """A family of random variables: ``batch_shape`` counts them, ``event_shape`` is the shape of one.

    Raises ValueError when a parameter lies outside of its constraint, unless ``validate_args`` is False.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: dict[str, Constraint] = {}
    _validate_args = True

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                computed = isinstance(getattr(type(self), name, None), property)
                if not constraints.is_dependent(constraint) and (name in self.__dict__ or computed):
                    self._check_parameter(name, getattr(self, name), constraint)

    def _check_parameter(self, name: str, value: Any, constraint: Constraint) -> None:
        if not constraint.check(value).all():
            raise ValueError(
                f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
            )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Choose whether parameters and samples are checked."""
        Distribution._validate_args = bool(value)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        made = object.__new__(type(self)) if _instance is None else _instance
        made.__dict__.update(self.__dict__)
        made._batch_shape = Size(batch_shape)
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                setattr(made, name, value.expand(made._batch_shape + value.shape[len(self._batch_shape) :]))
        return made

    def _get_checked_instance(self, cls: type[Any], _instance: Any = None) -> Any:
        """A blank object for a subclass's ``expand``; raises NotImplementedError when it has none of its own."""
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    @property
    def batch_shape(self) -> Size:
        """The shape of the family."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one event."""
        return self._event_shape

    @property
    def support(self) -> Constraint | None:
        """Which values can occur."""
        return None

    @property
    def mean(self) -> Any:
        """The expected value."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Any:
        """Draw ``n`` times: the old form of ``sample((n,))``."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw such that gradients reach the parameters."""
        raise NotImplementedError

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability, or of the density."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The probability of less."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The value below which that much probability lies."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values that can occur."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """The entropy in nats."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(tuple(sample_shape) + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        """Raise ValueError for a value that has another shape or can't occur."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        _check_shape(value.size(), self._batch_shape, self._event_shape)
        support = self.support
        if support is not None and not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        shown = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        texts = [f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in shown.items()]
        return f"{type(self).__name__}({', '.join(texts)})"


def _check_shape(actual: Size, batch: Size, event: Size) -> None:
    if actual[len(actual) - len(event) :] != event:
        raise ValueError(f"The right-most size of value must match event_shape: {actual} vs {event}.")
    expected = batch + event
    for ours, theirs in zip(reversed(actual), reversed(expected), strict=False):
        if ours != 1 and theirs != 1 and ours != theirs:
            text = f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}."
            raise ValueError(text)


def like(value: Any, *parameters: Any) -> Size:
    """The batch shape of a parameter: none when the ``parameters`` were all given as numbers."""
    return Size() if all(isinstance(each, Number) for each in parameters) else value.size()


class ExponentialFamily(Distribution):
    """A distribution with natural parameters; a subclass defines them and the logarithm of its normaliser."""

    @property
    def _mean_carrier_measure(self) -> Any:
        """The mean logarithm of the carrier measure; 0 where the measure is constant."""
        raise NotImplementedError

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    def entropy(self) -> Any:
        """The entropy in nats: the normaliser's Bregman divergence."""
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        gradients = torch.autograd.grad(normalizer.sum(), parameters, create_graph=True)
        result = -self._mean_carrier_measure + normalizer
        for parameter, gradient in zip(parameters, gradients, strict=True):
            result = result - (parameter * gradient).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
