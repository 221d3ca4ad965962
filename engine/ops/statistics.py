"""Statistics: quantiles, histograms, counts, covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import in_cpp
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define, no_derivative
from stridescope.engine.dispatch.out_rule import FREE
from stridescope.engine.dispatch.run import cast, resolved
from stridescope.engine.dtype import (
    FLOAT,
    INTEGER,
    bool_,
    cpp_name,
    default_float,
    float32,
    float64,
    int64,
    scalar_name,
)
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.number_range import check_number
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.ops.valueless import need_values
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, fresh
from stridescope.engine.warn import internal, warn

# ---- quantiles ---------------------------------------------------------------------------------------------------

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name: str, self: Tensor, q: Tensor, interpolation: str) -> None:
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
            f"{interpolation}"
        )
    if not self._array.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q._array.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if self.dtype not in (float32, float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if q.dtype is not self.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if not bool(np.all((q._array >= 0) & (q._array <= 1))):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")


def _sorted_rows(self: Tensor, dim: int | None) -> Tensor:
    """The values in order, with the dim to reduce last."""
    if dim is None:
        return self.flatten().sort()[0]  # type: ignore[no-any-return]
    if dim == self._array.ndim - 1:
        return self.sort()[0]  # type: ignore[no-any-return]
    return self.unsqueeze(-1).transpose(dim, -1).sort()[0]  # type: ignore[no-any-return]


def _result_shape(self: Tensor, q: Tensor, dim: int | None, keepdim: bool) -> list[int]:
    """The sizes of the result, the quantiles first."""
    shape = [q.shape[0]] if q._array.ndim else [1]
    if dim is not None and self._array.ndim:
        kept = [1 if d == dim else n for d, n in enumerate(self.shape)]
        shape += kept if keepdim else [n for d, n in enumerate(kept) if d != dim]
    elif keepdim:
        shape += [1] * self._array.ndim
    return shape


def _ranks(rows: Tensor, q: Tensor, skip_nan: bool) -> Tensor:
    """How far into the sorted rows each quantile lies."""
    if skip_nan:
        count = rows.isnan().logical_not().sum(-1, True)
        ranks = q * (count - 1).to(rows.dtype)
        return ranks.masked_fill(ranks < 0, 0)  # type: ignore[no-any-return]
    last = rows.shape[-1] - 1
    has_nan = rows.isnan().any(-1, True)
    ranks = (q * last).expand((*rows.shape[:-1], q.shape[0]))
    return ranks.masked_fill(has_nan, last)  # type: ignore[no-any-return]


def _quantile(name: str, self: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        q = self.new_full((), q, dtype=self.dtype if self.dtype.category == FLOAT else None)
    _check_quantile(name, self, q, interpolation)
    if dim is not None:
        dim = wrap_dim(dim, self._array.ndim)
    rows = _sorted_rows(self, dim if self._array.ndim else None)
    shape = _result_shape(self, q, dim, keepdim)
    rows = rows.view((*shape[1:], rows.shape[-1]))
    values = _interpolated(rows, _ranks(rows, q.reshape(-1), name == "nanquantile"), interpolation)
    if not q._array.ndim:
        return values.squeeze_(-1)  # type: ignore[no-any-return]
    return values.unsqueeze_(0).transpose_(0, -1).squeeze_(-1)  # type: ignore[no-any-return]


def _interpolated(rows: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": ranks.floor, "higher": ranks.ceil, "nearest": ranks.round}[interpolation]()
    below = ranks.to(int64)
    values = rows.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weights = ranks - below if interpolation == "linear" else ranks.new_full(ranks.shape, 0.5)
        values.lerp_(rows.gather(-1, ranks.ceil().to(int64)), weights)
    return values  # type: ignore[no-any-return]


for _name, _words in (("quantile", ""), ("nanquantile", ", NaN left out")):
    for _overload, _kind in (("", "Tensor q"), (".scalar", "float q")):
        define(
            f"{_name}{_overload}(Tensor self, {_kind}, int? dim=None, bool keepdim=False, *, "
            "str interpolation='linear') -> Tensor",
            doc=f"The value below which the share q of the elements lies{_words}.",
            composite=lambda self, q, dim=None, keepdim=False, interpolation="linear", name=_name: _quantile(
                name, self, q, dim, keepdim, interpolation
            ),
            samples=[((3, 4), 0.3)] if _overload else [],
        )

# ---- counts ------------------------------------------------------------------------------------------------------


def _bincount(self: Tensor, weights: Tensor | None, minlength: int) -> Tensor:
    need_values("bincount", self, weights)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    array = self._array
    if array.ndim == 1 and not array.size and self.dtype.category == INTEGER:  # without a look at the weights
        return fresh(np.zeros(minlength, np.int64), int64, self.device)
    if self.dtype.category != INTEGER:
        raise not_implemented("bincount_cpu", self.dtype)
    if array.ndim != 1 or (array.size and array.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights._array.shape != array.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is None:
        return fresh(np.bincount(array.astype(np.int64), minlength=minlength).astype(np.int64), int64, self.device)
    kind = weights.dtype if weights.dtype is float32 else float64
    counts = np.bincount(array.astype(np.int64), resolved(weights).astype(np.float64), minlength)
    return fresh(cast(counts, kind), kind, self.device)


define(
    "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
    doc="How often each whole number occurs.",
    run=_bincount,
    node="NotImplemented",
    grads={"self,weights": no_derivative("bincount")},
)


def _bounds(values: Array, low: Any, high: Any, name: str, margin: float) -> tuple[float, float]:
    """The range of a histogram: that of the values when none is given, widened by ``margin`` when it is a point."""
    low, high = float(low), float(high)
    if low == high and values.size:
        low, high = float(values.min()), float(values.max())
    elif low == high and margin < 1:
        return 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low:g}, {high:g}] is not finite")
    if low == high:
        low, high = low - margin, high + margin
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min")
    return low, high


def _histc(self: Tensor, bins: int, min: Any, max: Any) -> Tensor:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if self.dtype.category == INTEGER:
        check_number(float(min), self.dtype)
        check_number(float(max), self.dtype)
    if self.dtype.is_complex and not min and not max:
        raise not_implemented("aminmax_cpu", self.dtype)
    if self.dtype.category != FLOAT:
        raise not_implemented("linspace_cpu" if self.dtype is bool_ else "histogram_cpu", self.dtype)
    values = resolved(self).reshape(-1)
    low, high = _bounds(values, min, max, "torch.histc", 1.0)
    kept = values[(values >= low) & (values <= high)]
    first, last = (np.asarray(edge).astype(values.dtype) for edge in (low, high))
    place = ((kept - first) * values.dtype.type(bins) / (last - first)).astype(np.int64)  # rounded at every step
    counts = np.bincount(place - (place == bins), None, bins)
    return fresh(cast(counts, self.dtype), self.dtype, self.device)


def _counted(values: Array, edges: Array, weight: Array | None) -> Array:
    """The (weighted) number of values in each bin; the last bin holds its right edge."""
    inside = (values >= edges[0]) & (values <= edges[-1])
    place = np.searchsorted(edges, values[inside], side="right") - 1
    place[place == len(edges) - 1] = len(edges) - 2
    return np.bincount(place, None if weight is None else weight[inside], len(edges) - 1)


define(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    doc="How many elements lie in each of equally wide bins.",
    run=_histc,
    out=FREE,
)


def _histogram(self: Tensor, edges: Array, weight: Tensor | None, density: bool) -> tuple[Tensor, Tensor]:
    values = resolved(self).reshape(-1).astype(np.float64)
    own = None if weight is None else resolved(weight).reshape(-1).astype(np.float64)
    counts = _counted(values, edges.astype(np.float64), own).astype(np.float64)
    if density:
        counts = counts / counts.sum() / np.diff(edges)
    return fresh(cast(counts, self.dtype), self.dtype, self.device), fresh(
        cast(edges, self.dtype), self.dtype, self.device
    )


def _check_histogram(self: Tensor, weight: Tensor | None) -> None:
    if weight is not None and weight.dtype is not self.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({cpp_name(self.dtype)}), and weight({cpp_name(weight.dtype)})"
        )
    if weight is not None and weight._array.shape != self._array.shape:
        raise RuntimeError(
            "torch.histogram(): if weight tensor is provided it should have the same shape as the input tensor "
            "excluding its innermost dimension"
        )


def _histogram_bins(self: Tensor, bins: Tensor, weight: Tensor | None, density: bool) -> tuple[Tensor, Tensor]:
    need_values("histogram.bins_tensor", self, bins, weight)
    if bins.dtype is not self.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{cpp_name(self.dtype)} and bins for dimension 0 with dtype {cpp_name(bins.dtype)}"
        )
    _check_histogram(self, weight)
    if self.dtype.category != FLOAT and self._array.size:
        raise not_implemented("histogram_cpu", self.dtype)
    return _histogram(self, resolved(bins).copy(), weight, density)


def _histogram_count(
    self: Tensor, bins: int, range: Sequence[float] | None, weight: Tensor | None, density: bool
) -> tuple[Tensor, Tensor]:
    need_values("histogram.bin_ct", self, weight)
    if range is None and self.dtype not in (float32, float64) and self._array.size:
        raise not_implemented("histogramdd", self.dtype)
    _check_histogram(self, weight)
    if self.dtype.category != FLOAT and self._array.size:
        raise not_implemented("histogram_cpu", self.dtype)
    low, high = range if range is not None else (0.0, 0.0)
    low, high = _bounds(resolved(self).reshape(-1), low, high, "torch.histogram()", 0.5)
    return _histogram(self, np.linspace(low, high, bins + 1).astype(self.dtype.np), weight, density)


define(
    "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) "
    "-> (Tensor hist, Tensor bin_edges)",
    doc="How many elements lie between each two neighbouring edges.",
    run=_histogram_bins,
)
define(
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) "
    "-> (Tensor hist, Tensor bin_edges)",
    doc="How many elements lie in each of equally wide bins, and the edges.",
    run=_histogram_count,
)


def _edges_of(self: Tensor, bins: Any, range: Sequence[float] | None) -> list[Array]:
    width = self.shape[-1]
    columns = resolved(self).reshape(-1, width)
    if isinstance(bins, (list, tuple)) and bins and isinstance(bins[0], Tensor):
        if len(bins) != width:
            raise RuntimeError(
                f"torch.histogramdd: expected {width} sequences of bin edges for a {width}-dimensional histogram but "
                f"got {len(bins)}"
            )
        return [resolved(b) for b in bins]
    counts = [bins] * width if isinstance(bins, int) else list(bins)
    if len(counts) != width:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    edges = []
    for k, count in enumerate(counts):
        low, high = (range[2 * k], range[2 * k + 1]) if range is not None else (0.0, 0.0)
        low, high = _bounds(columns[:, k], low, high, "torch.histogramdd()", 0.5)
        edges.append(np.linspace(low, high, count + 1).astype(self.dtype.np))
    return edges


def _counted_in(columns: Array, edges: list[Array], weight: Array | None, density: bool) -> Array:
    """The (weighted) number of points in each cell of a grid."""
    shape = tuple(len(e) - 1 for e in edges)
    inside = np.ones(columns.shape[0], bool)
    places = []
    for k, edge in enumerate(edges):
        values = columns[:, k]
        inside &= (values >= edge[0]) & (values <= edge[-1])
        place = np.searchsorted(edge, values, side="right") - 1
        places.append(np.where(values == edge[-1], len(edge) - 2, place))
    flat = np.ravel_multi_index([p[inside] for p in places], shape, mode="clip")
    kept = None if weight is None else weight[inside]
    counts = np.bincount(flat, kept, math.prod(shape)).reshape(shape).astype(np.float64)
    if density:
        total = counts.sum()
        for k, edge in enumerate(edges):
            counts = counts / np.diff(edge).reshape([-1 if d == k else 1 for d in range(len(edges))])
        counts = counts / total
    return counts


def _histogramdd(
    self: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, tuple[Tensor, ...]]:
    if self._array.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    given = isinstance(bins, (list, tuple)) and bool(bins) and isinstance(bins[0], Tensor)
    takes = self.dtype.category == FLOAT if given else self.dtype in (float32, float64)
    if not takes:
        raise not_implemented("histogram_cpu" if given else "histogramdd", self.dtype)
    edges = _edges_of(self, bins, range)
    columns = resolved(self).reshape(-1, self.shape[-1]).astype(np.float64)
    own = None if weight is None else resolved(weight).reshape(-1).astype(np.float64)
    counts = _counted_in(columns, [e.astype(np.float64) for e in edges], own, density)
    made = tuple(bins) if given else tuple(fresh(cast(e.copy(), self.dtype), self.dtype, self.device) for e in edges)
    return wrapped(counts, self.dtype, self), made


for _overload, _kind in (("", "int[] bins"), (".int_bins", "int bins"), (".TensorList_bins", "Tensor[] bins")):
    define(
        f"histogramdd{_overload}(Tensor self, {_kind}, float[]? range=None, Tensor? weight=None, "
        "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        doc="A histogram in several dimensions: each row of the last dim is a point.",
        composite=_histogramdd,
    )

# ---- covariance --------------------------------------------------------------------------------------------------


def _check_weights(name: str, weights: Tensor | None, count: int, whole: bool) -> None:
    if weights is None:
        return
    if weights._array.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights._array.ndim} "
            "dimensions"
        )
    if (weights.dtype.category == INTEGER) is not whole:
        kind = "integral" if whole else "floating point"
        got = scalar_name(weights.dtype)
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {got} dtype")
    if weights._array.size != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights._array.size} != {count}"
        )
    if weights._array.size and weights._array.min() < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")


@in_cpp
def _cov(self: Tensor, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    if self._array.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self._array.ndim} dimensions"
        )
    if self.dtype.category == 0:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = self.view(1, -1) if self._array.ndim < 2 else self
    count = rows.shape[1]
    _check_weights("fweights", fweights, count, True)
    _check_weights("aweights", aweights, count, False)
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    rows = rows.to(default_float()) if rows.dtype.category <= INTEGER else rows
    centred, norm = _centred(rows, count, correction, weights, aweights)
    if isinstance(norm, (int, float)) and norm <= 0 or isinstance(norm, Tensor) and bool(norm <= 0):
        warn(internal("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of "
                      "observations.", "aten/src/ATen/native/Correlation.cpp:129"))  # fmt: skip
        norm = 0
    other = (centred if weights is None else centred * weights).t()
    product = op_call("matmul")(centred, other.conj() if other.dtype.is_complex else other)
    return (product / (norm if isinstance(norm, Tensor) else product.new_full((), norm))).squeeze()  # type: ignore[no-any-return]


def _centred(
    rows: Tensor, count: int, correction: int, weights: Tensor | None, aweights: Tensor | None
) -> tuple[Tensor, Any]:
    """The rows less their (weighted) means, and what their products are divided by."""
    if weights is None:
        mean = rows.sum(1) / rows.new_full((), count) if count else rows.sum(1)
        return rows - mean.unsqueeze(1), count - correction
    total = weights.sum()
    if not bool(total != 0):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = ((rows * weights).sum(1) / total).unsqueeze(1)
    if correction == 0:
        norm = total
    elif aweights is None:
        norm = total - correction
    else:
        norm = total - correction * (weights * aweights).sum() / total
    return rows - mean, norm


define(
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
    doc="The covariance of each pair of rows.",
    composite=_cov,
    samples=[((3, 4),)],
)


def _corrcoef(self: Tensor) -> Tensor:
    if self._array.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{self._array.ndim} dimensions"
        )
    c = _cov(self)
    if not c._array.ndim:
        return c / c  # type: ignore[no-any-return]
    d = c.diagonal()
    deviation = (d.real if d.dtype.is_complex else d).sqrt()
    scaled = c / deviation.view(-1, 1) / deviation.view(1, -1)
    if not scaled.dtype.is_complex:
        return scaled.clamp(-1, 1)  # type: ignore[no-any-return]
    return op_call("complex")(scaled.real.clamp(-1, 1), scaled.imag.clamp(-1, 1))  # type: ignore[no-any-return]


define(
    "corrcoef(Tensor self) -> Tensor",
    doc="The correlation of each pair of rows.",
    composite=_corrcoef,
    samples=[((3, 4),)],
)
