"""Distributions of matrices: Wishart's of covariances, and LKJ's of the lower roots of correlations."""

from __future__ import annotations

import functools
import math
import warnings
from numbers import Number
from typing import Any

from stridescope.engine import torch
from stridescope.engine.tensor import Size
from stridescope.engine.torch.distributions import constraints
from stridescope.engine.torch.distributions.constraints import Constraint
from stridescope.engine.torch.distributions.distribution import Distribution, ExponentialFamily, broadcast_all
from stridescope.engine.torch.distributions.gammas import Beta, Chi2
from stridescope.engine.torch.distributions.multivariate import lower_root

TRIES = 10  # how often singular samples are drawn anew


class Wishart(ExponentialFamily):
    """The scatter matrix of ``df`` normal vectors, whose covariance is given by itself, its inverse or its lower root.

    Samples are made by Bartlett's decomposition. Raises ValueError for a ``df`` not above the dimension less one.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        forms = {
            "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril,
        }  # fmt: skip
        given = {name: matrix for name, matrix in forms.items() if matrix is not None}
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        batch = Size(matrix.shape[:-2])
        if isinstance(df, Number):
            self.df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch = torch.broadcast_shapes(batch, df.shape)
            self.df = df.expand(batch)
        size = matrix.shape[-1]
        if self.df.le(size - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        setattr(self, name, matrix.expand(tuple(batch) + (-1, -1)))
        if self.df.lt(size).any():
            low = "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim."
            warnings.warn(low, stacklevel=2)
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = lower_root(name, matrix)
        self._prepare()

    def _prepare(self) -> None:
        """What samples are made of: the squares of the diagonal of Bartlett's factor."""
        self._batch_dims = [-(dim + 1) for dim in range(len(self._batch_shape))]
        root = self._unbroadcasted_scale_tril
        less = torch.arange(self._event_shape[-1], dtype=root.dtype, device=root.device)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - less.expand(self._batch_shape + (-1,)))

    @property
    def arg_constraints(self) -> dict[str, Constraint]:  # type: ignore[override]
        """The bound of ``df`` depends on the dimension."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        made = super().expand(batch_shape, _instance)
        root = self._unbroadcasted_scale_tril
        made._unbroadcasted_scale_tril = root.expand(made._batch_shape + self._event_shape)
        made._prepare()
        return made

    def _full(self, matrix: Any) -> Any:
        return matrix.expand(self._batch_shape + self._event_shape)

    @functools.cached_property
    def scale_tril(self) -> Any:
        """The lower root of the covariance."""
        return self._full(self._unbroadcasted_scale_tril)

    @functools.cached_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        root = self._unbroadcasted_scale_tril
        return self._full(root @ root.transpose(-2, -1))

    @functools.cached_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        root = self._unbroadcasted_scale_tril
        identity = torch.eye(self._event_shape[-1], device=root.device, dtype=root.dtype)
        return self._full(torch.cholesky_solve(identity, root))

    def _times_covariance(self, factor: Any) -> Any:
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self._times_covariance(self.df)

    @property
    def mode(self) -> Any:
        """The most probable matrix; NaN where ``df`` is too small for one."""
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor[factor <= 0] = math.nan
        return self._times_covariance(factor)

    @property
    def variance(self) -> Any:
        """The variance of each entry."""
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        squares = covariance.pow(2) + torch.einsum("...i,...j->...ij", diagonal, diagonal)
        return self.df.view(self._batch_shape + (1, 1)) * squares

    def _drawn(self, sample_shape: Any) -> Any:
        size = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        factor = roots.clamp(min=torch.finfo(roots.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        row, column = torch.tril_indices(size, size, offset=-1)
        below = Size(sample_shape) + self._batch_shape + (size * (size - 1) // 2,)
        factor[..., row, column] = torch.randn(below, dtype=factor.dtype, device=factor.device)
        root = self._unbroadcasted_scale_tril @ factor
        return root @ root.transpose(-2, -1)

    def _over_batch(self, found: Any) -> Any:
        return found.amax(self._batch_dims) if self._batch_shape else found

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Any:
        """Draw such that gradients reach the parameters.

        As PyTorch 2.13 has it, samples that are positive definite are drawn anew once, with a warning, and again
        while they are singular: ``max_try_correction`` times at most.
        """
        sample = self._drawn(Size(sample_shape))
        again = self._over_batch(self.support.check(sample))
        if not again.any():
            return sample
        warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(TRIES if max_try_correction is None else max_try_correction):
            fresh = self._drawn(again[again].shape)
            sample[again] = fresh
            singular = ~self.support.check(fresh)
            again[again.clone()] = self._over_batch(singular)
            if not again.any():
                break
        return sample

    def _log_root(self) -> Any:
        """The logarithm of what the root of the doubled covariance does to a volume."""
        diagonal = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1)
        return self._event_shape[-1] * math.log(2) / 2 + diagonal.log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        self._validate_sample(value)
        df, size = self.df, self._event_shape[-1]
        solved = torch.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        volume = (df - size - 1) / 2 * torch.linalg.slogdet(value).logabsdet
        return -df * self._log_root() - torch.mvlgamma(df / 2, p=size) + volume - solved / 2

    def entropy(self) -> Any:
        """The entropy in nats."""
        df, size = self.df, self._event_shape[-1]
        start = (size + 1) * self._log_root() + torch.mvlgamma(df / 2, p=size)
        return start - (df - size - 1) / 2 * _multivariate_digamma(df / 2, size) + df * size / 2

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Any) -> Any:
        matrix, power = natural_params
        size = self._event_shape[-1]
        volume = -torch.linalg.slogdet(-2 * matrix).logabsdet + math.log(2) * size
        return (power + (size + 1) / 2) * volume + torch.mvlgamma(power + (size + 1) / 2, p=size)


def _multivariate_digamma(value: Any, size: int) -> Any:
    if not value.gt((size - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    less = torch.arange(size, dtype=value.dtype, device=value.device).div(2)
    return torch.digamma(value.unsqueeze(-1) - less.expand(value.shape + (-1,))).sum(-1)


class LKJCholesky(Distribution):
    """Lower roots of correlation matrices, each as probable as its determinant to the power ``concentration`` - 1.

    Sampled by the onion method (Lewandowski, Kurowicka and Joe, 2009): row after row, a direction on a sphere and a
    length from a beta distribution. Raises ValueError for a ``dim`` below 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        steps = torch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = torch.cat([steps.new_zeros((1,)), steps])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a batch shape."""
        made = super().expand(batch_shape, _instance)
        made._beta = self._beta.expand(made._batch_shape + (self.dim,))
        return made

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw lower roots, whose rows have length 1."""
        lengths = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        normal = torch.randn(shape, dtype=lengths.dtype, device=lengths.device).tril(-1)
        directions = normal / normal.norm(dim=-1, keepdim=True)
        directions[..., 0, :].fill_(0.0)  # instead of NaN
        below = torch.sqrt(lengths) * directions
        rest = torch.clamp(1 - torch.sum(below**2, dim=-1), min=torch.finfo(below.dtype).tiny)
        below += torch.diag_embed(rest.sqrt())
        return below

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density (of the cited paper, page 1999, for roots instead of correlations)."""
        self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        places = torch.arange(2, self.dim + 1, device=self.concentration.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - places
        rest = self.dim - 1
        alpha = self.concentration + 0.5 * rest
        constant = 0.5 * rest * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, rest) - torch.lgamma(alpha) * rest
        return torch.sum(powers * diagonal.log(), dim=-1) - constant
