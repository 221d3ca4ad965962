"""Maps of single numbers."""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine import torch
from stridescope.engine.ops.from_data import as_tensor
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.constraints import Constraint
from stridescope.engine.torch.distributions.distribution import broadcast_all
from stridescope.engine.torch.distributions.transform import Transform


def _nn() -> Any:
    return torch.nn.functional


class _Simple(Transform):
    """A growing bijection of single numbers."""

    bijective = True
    domain: Any = constraints.real
    codomain: Any = constraints.real
    sign_value = 1

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__


class ExpTransform(_Simple):
    """The exponential."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The argument itself."""
        return x


class PowerTransform(_Simple):
    """Positive numbers to a power."""

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same map with or without a cache."""
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    sign = property(lambda self: self.exponent.sign())

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all().item())

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the slope."""
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result."""
        return torch.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


class SigmoidTransform(_Simple):
    """The logistic curve."""

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        limits = torch.finfo(x.dtype)
        return torch.clamp(torch.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)

    def _inverse(self, y: Any) -> Any:
        limits = torch.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the slope."""
        return -_nn().softplus(-x) - _nn().softplus(x)


class SoftplusTransform(_Simple):
    """The logarithm of one plus the exponential."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return _nn().softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the slope."""
        return -_nn().softplus(-x)


class TanhTransform(_Simple):
    """The hyperbolic tangent."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the slope, in a form that large numbers keep exact."""
        return 2.0 * (math.log(2.0) - x - _nn().softplus(-2.0 * x))


class AbsTransform(Transform):
    """The absolute value: no bijection."""

    domain, codomain = constraints.real, constraints.positive

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """``loc + scale * x``."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        """As it was asked for."""
        return self._event_dim

    def _real(self) -> Constraint:
        return constraints.real if not self.event_dim else constraints.independent(constraints.real, self.event_dim)

    domain = property(_real)
    codomain = property(_real)

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same map with or without a cache."""
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(bool(as_tensor(mine == theirs).all()) for mine, theirs in pairs)

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        """That of the scale."""
        if isinstance(self.scale, (int, float)):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the scale, for every element of an event."""
        number = isinstance(self.scale, (int, float))
        result = torch.full_like(x, math.log(abs(self.scale))) if number else torch.abs(self.scale).log()
        shape = x.shape
        if self.event_dim:
            result = result.view(result.size()[: -self.event_dim] + (-1,)).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result."""
        return torch.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape
