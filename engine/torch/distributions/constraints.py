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

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the values are separate, where that is known."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return bool(self._is_discrete)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The dims of an event, where that is known."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return int(self._event_dim)

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """The same, with more known of it."""
        discrete = self._is_discrete if is_discrete is NotImplemented else is_discrete
        return _Dependent(is_discrete=discrete, event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, value: Any) -> Any:
        """Not possible: raises ValueError."""
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, _Dependent):
    """Decorates a ``support`` that depends on the distribution's parameters."""

    def __init__(self, fn: Any = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Any) -> Any:  # type: ignore[override]
        """Decorate, with the options that were given first."""
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other parameters."""
    return isinstance(constraint, _Dependent)


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


class _HalfOpenInterval(_Bounded):
    def check(self, value: Any) -> Any:
        return (self.bounds["lower_bound"] <= value) & (value < self.bounds["upper_bound"])


class _Multinomial(Constraint):
    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Any) -> Any:
        return (x >= 0).all(dim=-1) & (x.sum(dim=-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return (value.tril() == value).view(value.shape[:-2] + (-1,)).min(-1)[0]


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        near = 10 * torch.finfo(value.dtype).eps * value.size(-1)
        norms = torch.linalg.norm(value.detach(), dim=-1)
        return lower_cholesky.check(value) & (norms - 1).abs().le(near).all(dim=-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        size, equal = value.shape[:-2], value.shape[-2] == value.shape[-1]
        return torch.full(size, equal, dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        square = super().check(value)
        return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1) if square.all() else square


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        return torch.linalg.eigvalsh(value).ge(0).all(-1) if symmetric.all() else symmetric


class _Joined(Constraint):
    """Several constraints, each on its part of a dim."""

    def __init__(self, cseq: Any, dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether one of them is."""
        return any(constraint.is_discrete for constraint in self.cseq)


class _Cat(_Joined):
    def __init__(self, cseq: Any, dim: int = 0, lengths: Any = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The largest."""
        return int(max(constraint.event_dim for constraint in self.cseq))

    def check(self, value: Any) -> Any:
        parts = value.split(self.lengths, self.dim)
        return torch.cat([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Joined):
    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The largest, and one more where the stack's dim is part of the event."""
        dim = int(max(constraint.event_dim for constraint in self.cseq))
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        parts = value.unbind(self.dim)
        return torch.stack([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """What a mixture's components allow."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Any) -> Any:
        """For a value without the components' dim: whether all components allow it."""
        dims = self.base_constraint.event_dim
        result = self.base_constraint.check(value.unsqueeze(-1 - dims))
        if value.dim() < dims:
            raise ValueError(f"Expected value.dim() >= {dims} but got {value.dim()}")
        return result.all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Real numbers between two bounds."""
    return _Interval(lower_bound=lower_bound, upper_bound=upper_bound)


def integer_interval(lower_bound: int, upper_bound: int) -> Constraint:
    """Whole numbers between two bounds."""
    return _IntegerInterval(lower_bound=lower_bound, upper_bound=upper_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Real numbers below a bound."""
    return _LessThan(upper_bound=upper_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Real numbers from a bound on."""
    return _GreaterThanEq(lower_bound=lower_bound)


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Real numbers from a bound on, below another."""
    return _HalfOpenInterval(lower_bound=lower_bound, upper_bound=upper_bound)


def multinomial(upper_bound: Any) -> Constraint:
    """Vectors of counts whose sum is no more than a bound."""
    return _Multinomial(upper_bound)


def cat(cseq: Any, dim: int = 0, lengths: Any = None) -> Constraint:
    """Constraints on consecutive parts of a dim."""
    return _Cat(cseq, dim, lengths)


def stack(cseq: Any, dim: int = 0) -> Constraint:
    """Constraints on the slices of a dim."""
    return _Stack(cseq, dim)


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
positive_integer = _IntegerGreaterThan(lower_bound=1)
lower_triangular, corr_cholesky, square = _LowerTriangular(), _CorrCholesky(), _Square()
symmetric, positive_semidefinite = _Symmetric(), _PositiveSemidefinite()
real_vector = independent(real, 1)
