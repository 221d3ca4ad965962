"""Differences and areas: diff, gradient, trapezoid and cumulative_trapezoid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dtype import BOOL, uint8
from stridescope.engine.layout import wrap_dim, wrap_dims
from stridescope.engine.ops.arithmetic import mul_scalar
from stridescope.engine.ops.creation import zeros_like
from stridescope.engine.ops.division import div_scalar
from stridescope.engine.ops.lookup import concatenated
from stridescope.engine.ops.views_select import slice_
from stridescope.engine.tensor import Tensor


def _step(self: Tensor, dim: int) -> Tensor:
    size = self.shape[dim]
    later, earlier = self.narrow(dim, 1, size - 1), self.narrow(dim, 0, size - 1)
    return later.logical_xor(earlier) if self.dtype.category == BOOL else later - earlier  # type: ignore[no-any-return]


def _check_ends(self: Tensor, other: Tensor | None, dim: int) -> None:
    if other is None:
        return
    if other._array.ndim != self._array.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for i, (a, b) in enumerate(zip(other.shape, self.shape, strict=True)):
        if a != b and i != dim:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({i}) = {b}, but got tensor.size({i}) = {a}"
            )


def _diff(self: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Any:
    if not self._array.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0 and prepend is None and append is None:  # PyTorch does not look at dim then
        return zeros_like.call(self).copy_(self)
    wrapped = wrap_dim(dim, self._array.ndim)
    for end in (prepend, append):
        _check_ends(self, end, wrapped)
    if n == 0:
        return zeros_like.call(self).copy_(self)
    parts = [part for part in (prepend, self, append) if part is not None]
    result = concatenated(parts, wrapped) if len(parts) > 1 else self
    n = min(n, result.shape[wrapped])
    for _ in range(n):
        result = _step(result, wrapped) if result.shape[wrapped] else result.narrow(wrapped, 0, 0)
    return result


define(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    doc="The differences of neighbours along a dim.",
    composite=_diff,
    out=Out(memory_first=True),
    samples=[((3, 4),)],
)

# ---- areas -------------------------------------------------------------------------------------------------------


def _halves(y: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    if not y._array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    earlier = slice_.call(y, dim, 0, -1, 1)
    return slice_.call(y, dim, 1, None, 1), earlier


def _widths(y: Tensor, x: Tensor, dim: int, name: str) -> Tensor:
    """The distances between the sample points, shaped to stand along ``dim`` of ``y``."""
    if x._array.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = x.view([-1 if d == dim else 1 for d in range(y._array.ndim)])
    elif x._array.ndim < y._array.ndim:
        x = x.view((1,) * (y._array.ndim - x._array.ndim) + tuple(x.shape))
    later, earlier = _halves(x, dim)
    return later - earlier  # type: ignore[no-any-return]


def _trapezoid_x(y: Tensor, x: Tensor, dim: int = -1) -> Tensor:
    dim = wrap_dim(wrap_dim(dim, y._array.ndim), y._array.ndim, scalar=False)
    if not y.shape[dim]:
        return _empty_area(y, dim)
    if BOOL in (y.dtype.category, x.dtype.category):
        raise RuntimeError("trapezoid: received a bool input for `x` or `y`, but bool is not supported")
    widths = _widths(y, x, dim, "trapezoid")
    later, earlier = _halves(y, dim)
    return div_scalar.call(((later + earlier) * widths).sum(dim), 2.0)  # type: ignore[no-any-return]


def _trapezoid_dx(y: Tensor, dx: Any = 1, dim: int = -1) -> Tensor:
    dim = wrap_dim(dim, y._array.ndim, scalar=False)
    if not y.shape[dim]:
        return _empty_area(y, dim)
    if y.dtype.category == BOOL:
        raise RuntimeError("trapezoid: received a bool input for `y`, but bool is not supported")
    ends = y.select(dim, 0) + y.select(dim, -1)
    return mul_scalar.call(y.sum(dim) - mul_scalar.call(ends, 0.5), dx)  # type: ignore[no-any-return]


def _empty_area(y: Tensor, dim: int) -> Tensor:
    return y.new_empty(tuple(n for d, n in enumerate(y.shape) if d != dim)).zero_()  # type: ignore[no-any-return]


def _cumulative_x(y: Tensor, x: Tensor, dim: int = -1) -> Tensor:
    dim = wrap_dim(wrap_dim(dim, y._array.ndim), y._array.ndim, scalar=False)
    if BOOL in (y.dtype.category, x.dtype.category):
        raise RuntimeError("cumulative_trapezoid: received a bool input for `x` or `y`, but bool is not supported")
    widths = _widths(y, x, dim, "cumulative_trapezoid")
    later, earlier = _halves(y, dim)
    return div_scalar.call(((later + earlier) * widths).cumsum(dim), 2.0)  # type: ignore[no-any-return]


def _cumulative_dx(y: Tensor, dx: Any = 1, dim: int = -1) -> Tensor:
    if y.dtype.category == BOOL:
        raise RuntimeError("cumulative_trapezoid: received a bool input for `y`, but bool is not supported")
    if y._array.ndim:
        dim = wrap_dim(dim, y._array.ndim)
    later, earlier = _halves(y, dim)
    return mul_scalar.call(later + earlier, dx / 2.0).cumsum(dim)  # type: ignore[no-any-return]


for _name, _with_x, _with_dx, _doc in (
    ("trapezoid", _trapezoid_x, _trapezoid_dx, "The area under the samples, by trapezoids."),
    ("trapz", _trapezoid_x, _trapezoid_dx, "The area under the samples, by trapezoids."),
    ("cumulative_trapezoid", _cumulative_x, _cumulative_dx, "The areas under the samples so far."),
):
    define(f"{_name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", doc=_doc, composite=_with_x)
    define(f"{_name}.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", doc=_doc, composite=_with_dx)

# ---- gradient ----------------------------------------------------------------------------------------------------


def _uneven(self: Tensor, x: Tensor, dim: int, edge_order: int) -> Tensor:
    """Differences over sample points that need not be equally far apart."""
    size = self.shape[dim]
    shape = [-1 if d == dim else 1 for d in range(self._array.ndim)]
    gaps = (x.narrow(0, 1, size - 1) - x.narrow(0, 0, size - 1)).view(shape)
    left, right = gaps.narrow(dim, 0, size - 2), gaps.narrow(dim, 1, size - 2)
    a = -right / (left * (left + right))
    b = (right - left) / (left * right)
    c = left / (right * (left + right))
    low, mid, high = (self.narrow(dim, k, size - 2) for k in (0, 1, 2))
    return _with_edges(self, a * low + b * mid + c * high, gaps, dim, edge_order)


def _with_edges(self: Tensor, middle: Tensor, gaps: Tensor, dim: int, edge_order: int) -> Tensor:
    size, last = self.shape[dim], gaps.shape[dim] - 1

    def at(k: int) -> Any:
        return self.narrow(dim, k, 1)

    first_gap, last_gap = gaps.narrow(dim, 0, 1), gaps.narrow(dim, last, 1)
    if edge_order == 1:
        start, end = (at(1) - at(0)) / first_gap, (at(size - 1) - at(size - 2)) / last_gap
    else:
        p, q = first_gap, gaps.narrow(dim, 1, 1)
        start = -(2.0 * p + q) / (p * (p + q)) * at(0) + (p + q) / (p * q) * at(1) + -p / (q * (p + q)) * at(2)
        p, q = gaps.narrow(dim, last - 1, 1), last_gap
        end = (
            q / (p * (p + q)) * at(size - 3)
            + -(q + p) / (p * q) * at(size - 2)
            + (2.0 * q + p) / (q * (p + q)) * at(size - 1)
        )
    return concatenated([start, middle, end], dim)


def _even(self: Tensor, spacing: Any, dim: int, edge_order: int) -> Tensor:
    """Differences over equally spaced sample points."""
    size = self.shape[dim]

    def at(k: int, length: int = 1) -> Any:
        return self.narrow(dim, k, length)

    middle = div_scalar.call(at(2, size - 2) - at(0, size - 2), 2.0)
    if edge_order == 1:
        start, end = at(1) - at(0), at(size - 1) - at(size - 2)
    else:
        start = at(0) * -1.5 + at(1) * 2 + at(2) * -0.5
        end = at(size - 3) * 0.5 + at(size - 2) * -2 + at(size - 1) * 1.5
    parts = [div_scalar.call(part, spacing) for part in (start, middle, end)]
    return concatenated(parts, dim)


def _dims_of(self: Tensor, dim: Any) -> tuple[int, ...]:
    if dim is None:
        return tuple(range(self._array.ndim))
    return wrap_dims((dim,) if isinstance(dim, int) else dim, self._array.ndim)


def _check(self: Tensor, spacing: Any, dim: Any, dims: Sequence[int], edge_order: int) -> None:
    if isinstance(spacing, (list, tuple)) and len(spacing) != len(dims):
        if dim is None:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() "
                f"= {self._array.ndim}', since dim argument was not given, but got a list of length {len(spacing)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {len(spacing)} and a dim argument of length "
            f"{len(dims)}."
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for one in dims if dim is None else (dim,) if isinstance(dim, int) else dim:
        if self.shape[wrap_dim(one, self._array.ndim, scalar=False)] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")


def gradient(self: Tensor, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The slopes along each dim; ``spacing`` is a distance, a list of them, or of tensors of sample points."""
    if self.dtype is uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    dims = _dims_of(self, dim)
    _check(self, spacing, dim, dims, edge_order)
    results = []
    for position, one in enumerate(dims):
        own = spacing[position] if isinstance(spacing, (list, tuple)) else 1 if spacing is None else spacing
        if isinstance(own, Tensor) and own._array.ndim:
            results.append(_uneven(self, own, one, edge_order))
        else:
            results.append(_even(self, own, one, edge_order))
    return tuple(results)


_GRADIENT_FORMS = (
    ("scalarint", "Scalar? spacing=None, int? dim=None, int edge_order=1", ("spacing", "dim", "edge_order")),
    ("scalararray", "Scalar spacing, int[] dim, int edge_order=1", ("spacing", "dim", "edge_order")),
    ("array", "int[] dim, int edge_order=1", ("dim", "edge_order")),
    ("scalarrayint", "Scalar[] spacing, int? dim=None, int edge_order=1", ("spacing", "dim", "edge_order")),
    ("scalarrayarray", "Scalar[] spacing, int[] dim, int edge_order=1", ("spacing", "dim", "edge_order")),
    ("tensorarrayint", "Tensor[] spacing, int? dim=None, int edge_order=1", ("spacing", "dim", "edge_order")),
    ("tensorarray", "Tensor[] spacing, int[] dim, int edge_order=1", ("spacing", "dim", "edge_order")),
)
for _overload, _text, _names in _GRADIENT_FORMS:
    define(
        f"gradient.{_overload}(Tensor self, *, {_text}) -> Tensor[]",
        doc="The slopes along each dim, by differences of neighbours.",
        composite=lambda self, *values, names=_names, **named: gradient(
            self, **dict(zip(names, values, strict=False)), **named
        ),
        method=False,
    )
