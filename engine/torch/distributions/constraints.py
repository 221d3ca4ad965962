"""``torch.distributions.constraints``: which values a parameter or a sample may have."""

from __future__ import annotations

from typing import Any

from stridescope.engine import torch


class Constraint:
    """A set of values; ``check`` says for each number, or each event, whether it belongs to the set."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """A bool tensor."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """Depends on other parameters; not checked by itself."""


class _Real(Constraint):
    def check(self, value: Any) -> Any:
        return value == value  # False for NaN


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Any) -> Any:
        whole = (value == 0) | (value == 1)
        return whole.all(-1) & value.sum(-1).eq(1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Any:
        return torch.all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        lower = (value.tril() == value).view(value.shape[:-2] + (-1,)).min(-1)[0]
        return lower & (value.diagonal(dim1=-2, dim2=-1) > 0).min(-1)[0]


class _PositiveDefinite(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        symmetric = torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)
        return torch.linalg.cholesky_ex(value).info.eq(0) if symmetric.all() else symmetric


class _Bounded(Constraint):
    """Numbers between bounds."""

    def __init__(self, **bounds: Any) -> None:
        self.bounds = dict(bounds)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.bounds.items())
        return f"{type(self).__name__.lstrip('_')}({inside})"


class _GreaterThan(_Bounded):
    def check(self, value: Any) -> Any:
        return self.bounds["lower_bound"] < value


class _LessThan(_Bounded):
    def check(self, value: Any) -> Any:
        return value < self.bounds["upper_bound"]


class _GreaterThanEq(_Bounded):
    def check(self, value: Any) -> Any:
        return self.bounds["lower_bound"] <= value


class _Interval(_Bounded):
    def check(self, value: Any) -> Any:
        return (self.bounds["lower_bound"] <= value) & (value <= self.bounds["upper_bound"])


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(_Bounded):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.bounds["lower_bound"])


class _IndependentConstraint(Constraint):
    """A constraint on whole events: all of their numbers satisfy it."""

    def __init__(self, base: Constraint, dims: int) -> None:
        self.base, self.dims = base, dims
        self.is_discrete, self.event_dim = base.is_discrete, base.event_dim + dims

    def check(self, value: Any) -> Any:
        result = self.base.check(value)
        return result.reshape(result.shape[: result.dim() - self.dims] + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base!r}, {self.dims})"


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Real numbers between two bounds."""
    return _Interval(lower_bound=lower_bound, upper_bound=upper_bound)


def integer_interval(lower_bound: int, upper_bound: int) -> Constraint:
    """Whole numbers between two bounds."""
    return _IntegerInterval(lower_bound=lower_bound, upper_bound=upper_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Real numbers below a bound."""
    return _LessThan(upper_bound=upper_bound)


def greater_than(lower_bound: Any) -> Constraint:
    """Real numbers above a bound."""
    return _GreaterThan(lower_bound=lower_bound)


def independent(base: Constraint, dims: int) -> Constraint:
    """A constraint on events of ``dims`` more dims."""
    return _IndependentConstraint(base, dims)


dependent = _Dependent()
real, boolean, one_hot, simplex = _Real(), _Boolean(), _OneHot(), _Simplex()
lower_cholesky, positive_definite = _LowerCholesky(), _PositiveDefinite()
positive, nonnegative = _GreaterThan(lower_bound=0.0), _GreaterThanEq(lower_bound=0.0)
unit_interval = _Interval(lower_bound=0.0, upper_bound=1.0)
nonnegative_integer = _IntegerGreaterThan(lower_bound=0)
real_vector = independent(real, 1)
