"""Maps of vectors and matrices, and maps made of one for each part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.distribution import Distribution
from stridescope.engine.torch.distributions.transform import Transform


class _Fixed(Transform):
    """A map without settings."""

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__

    def _check_dims(self, shape: Any, needed: int) -> Any:
        if len(shape) < needed:
            raise ValueError("Too few dimensions on input")
        return shape

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result."""
        return self._check_dims(shape, self.domain.event_dim)

    inverse_shape = forward_shape


class SoftmaxTransform(_Fixed):
    """The softmax of a vector: no bijection."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Any) -> Any:
        shares = (x - x.max(-1, True)[0]).exp()
        return shares / shares.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()


class StickBreakingTransform(_Fixed):
    """A vector as shares of a stick: each number breaks its share off what is left."""

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    def _offset(self, x: Any) -> Any:
        return x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)

    def _call(self, x: Any) -> Any:
        limits = torch.finfo(x.dtype)
        broken = torch.clamp(torch.sigmoid(x - self._offset(x).log()), min=limits.tiny, max=1.0 - limits.eps)
        pad = torch.nn.functional.pad
        return pad(broken, [0, 1], value=1) * pad((1 - broken).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        cropped = y[..., :-1]
        left = torch.clamp(1 - cropped.cumsum(-1), min=torch.finfo(y.dtype).tiny)
        return cropped.log() - left.log() + self._offset(cropped).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum over what was broken off."""
        x = x - self._offset(x).log()
        return (-x + torch.nn.functional.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """One number more."""
        self._check_dims(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        """One number less."""
        self._check_dims(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Fixed):
    """Square matrices as lower triangular ones with a positive diagonal."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Fixed):
    """Square matrices as positive definite ones."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Any) -> Any:
        root = LowerCholeskyTransform()(x)
        return root @ root.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


class CorrCholeskyTransform(_Fixed):
    """A vector of n (n - 1) / 2 numbers as the Cholesky factor of a correlation matrix."""

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x: Any) -> Any:
        x = torch.tanh(x)
        eps = torch.finfo(x.dtype).eps
        lower = _as_lower(x.clamp(min=-1 + eps, max=1 - eps))
        left = (1 - lower**2).sqrt().cumprod(-1)
        lower = lower + torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
        return lower * torch.nn.functional.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        shifted = torch.nn.functional.pad((1 - torch.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        ratio = _from_lower(y) / _from_lower(shifted).sqrt()
        return (ratio.log1p() - ratio.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """From the parts of the rows that are left, and the slope of the hyperbolic tangent."""
        left = 1 - (y * y).cumsum(dim=-1)
        stick = 0.5 * _from_lower(left, -2).log().sum(-1)
        slope = -2 * (x + torch.nn.functional.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return stick + slope

    def forward_shape(self, shape: Any) -> Any:
        """A square matrix; raises ValueError when the number of elements is not that of a triangle."""
        self._check_dims(shape, 1)
        size = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (size, size)

    def inverse_shape(self, shape: Any) -> Any:
        """A vector."""
        self._check_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


def _as_lower(vector: Any) -> Any:
    """A vector in the places below the diagonal of a matrix."""
    size = round((1 + (1 + 8 * vector.shape[-1]) ** 0.5) / 2)
    rows, columns = torch.tril_indices(size, size, offset=-1)
    matrix = vector.new_zeros(vector.shape[:-1] + (size, size))
    matrix[..., rows, columns] = vector
    return matrix


def _from_lower(matrix: Any, diag: int = -1) -> Any:
    """The elements below the diagonal (from ``diag`` down), row by row."""
    size = matrix.shape[-1]
    rows, columns = torch.tril_indices(size, size, offset=diag)
    return matrix[..., rows, columns]


class _Parts(Transform):
    """One map for each part of a dim."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(each, Transform) for each in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [each.with_cache(cache_size) for each in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all are."""
        return all(each.bijective for each in self.transforms)

    def _split(self, x: Any) -> Any:
        raise NotImplementedError

    def _join(self, parts: list[Any]) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        return self._join([each(part) for each, part in zip(self.transforms, self._split(x), strict=True)])

    def _inverse(self, y: Any) -> Any:
        return self._join([each.inv(part) for each, part in zip(self.transforms, self._split(y), strict=True)])

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """That of each part."""
        triples = zip(self.transforms, self._split(x), self._split(y), strict=True)
        return self._join([each.log_abs_det_jacobian(before, after) for each, before, after in triples])


class CatTransform(_Parts):
    """One map for each of some consecutive parts of a dim."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same map with or without a cache."""
        same = self._cache_size == cache_size
        return self if same else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _split(self, x: Any) -> Any:
        return x.split(self.lengths, self.dim)

    def _join(self, parts: list[Any]) -> Any:
        return torch.cat(parts, self.dim)

    domain = property(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))
    codomain = property(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))


class StackTransform(_Parts):
    """One map for each slice of a dim."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same map with or without a cache."""
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _split(self, x: Any) -> Any:
        return x.unbind(self.dim)

    def _join(self, parts: list[Any]) -> Any:
        return torch.stack(parts, self.dim)

    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution."""

    bijective, sign_value, codomain = True, 1, constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same map with or without a cache."""
        same = self._cache_size == cache_size
        return self if same else CumulativeDistributionTransform(self.distribution, cache_size=cache_size)

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the density."""
        return self.distribution.log_prob(x)
