"""Triangles of matrices, and products that fill a larger one: tril, triu, kron, outer, cross."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.overlap import is_lazy, refuse_internal_overlap, writable
from stridescope.engine.dispatch.run import cast, on_copy, resolved
from stridescope.engine.dtype import BOOL, scalar_name
from stridescope.engine.kernels.complex_product import separately
from stridescope.engine.kernels.fused import Values, fused
from stridescope.engine.layout import broadcast_shapes, wrap_dim
from stridescope.engine.ops.arithmetic import conj
from stridescope.engine.ops.matmul import unsafe_view
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import internal, warn_once


def _triangle(name: str, cut: Callable[..., Any]) -> Callable[..., Tensor]:
    def run(self: Tensor, diagonal: int) -> Tensor:
        if self._array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        array = resolved(self)
        return wrapped(cut(array, diagonal) if array.size else array.copy(), self.dtype, self)

    return run


def _in_steps(self: Tensor) -> bool:
    """Whether the matrices lie one behind the other; of the first dim of four or more all may be one and the same."""
    (*sizes, rows, columns), (*steps, _, _) = self._array.shape, self.strides
    expected = rows * columns
    if len(sizes) < 2:
        return True
    for place in range(len(sizes) - 1, -1, -1):
        if place == 0 and (steps[0] == 0 or sizes[0] == 1):
            return True
        if steps[place] != expected:
            return False
        expected *= sizes[place]
    return True


def _triangle_in_place(name: str, cut: Callable[..., Any]) -> Callable[..., Tensor]:
    """Zeros are written where nothing stays, and nothing else: an expanded tensor may so be cut, too."""

    def run(self: Tensor, diagonal: int) -> Tensor:
        if is_lazy(self):
            return on_copy(self, run, diagonal)
        if self._array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        if not _in_steps(self):
            refuse_internal_overlap(self)  # PyTorch cuts a copy, and copies that back
        if self._array.size:
            writable(self)[np.logical_not(cut(np.ones(self._array.shape, np.bool_), diagonal))] = 0
        return self

    return run


for _name, _cut, _doc in (
    ("tril", np.tril, "The lower triangle; zeros above."),
    ("triu", np.triu, "The upper triangle; zeros below."),
):
    _grads: dict[str, Any] = {
        "self": (lambda grad, diagonal: grad.tril(diagonal))
        if _name == "tril"
        else (lambda grad, diagonal: grad.triu(diagonal))
    }
    define(
        f"{_name}(Tensor self, SymInt diagonal=0) -> Tensor",
        doc=_doc,
        run=_triangle(_name, _cut),
        grads=_grads,
        samples=[((3, 4),), ((3, 3), 1)],
    )
    define(
        f"{_name}_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)",
        doc=f"{_doc} Written in place.",
        run=_triangle_in_place(_name, _cut),
        node=f"{_name.title()}Backward0",
        grads=_grads,
        samples=[((3, 4),), ((3, 3), 1)],
        function=False,
    )


def _outer(self: Tensor, vec2: Tensor) -> Tensor:
    for name, vector in (("self", self), ("vec2", vec2)):
        if vector._array.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector._array.ndim}-D")
    return self.view((self.shape[0], 1)) * vec2  # type: ignore[no-any-return]


define(
    "outer(Tensor self, Tensor vec2) -> Tensor",
    doc="The product of each pair of elements of two vectors.",
    composite=_outer,
    out=Out(memory_first=True),
    samples=[((3,), (4,))],
)


def _kron(self: Tensor, other: Tensor) -> Tensor:
    ndim = max(self._array.ndim, other._array.ndim)
    own = (1,) * (ndim - self._array.ndim) + tuple(self.shape)
    theirs = (1,) * (ndim - other._array.ndim) + tuple(other.shape)
    left = unsafe_view(self, [n for size in own for n in (size, 1)])
    right = unsafe_view(other, [n for size in theirs for n in (1, size)])
    return unsafe_view(left * right, [a * b for a, b in zip(own, theirs, strict=True)])


define(
    "kron(Tensor self, Tensor other) -> Tensor",
    doc="The Kronecker product: each element of self times all of other.",
    composite=_kron,
    out=Out(counts=0),
    samples=[((2, 3), (3, 2))],
)


def _linalg_cross(self: Tensor, other: Tensor, dim: int) -> Tensor:
    a, b = self._array.ndim, other._array.ndim
    if a != b:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    given, dim = dim, wrap_dim(dim, a)
    if self.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {given} must have length 3. Got {self.shape[dim]} and {other.shape[dim]}"
        )
    shape = broadcast_shapes(self.shape, other.shape)
    kind = self.dtype
    if kind.category == BOOL:
        raise not_implemented("cross", kind)
    if kind is not other.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(kind)} but found {scalar_name(other.dtype)}")
    left, right = (np.broadcast_to(cast(resolved(t), kind), shape) for t in (self, other))
    return wrapped(_crossed(left, right, dim).astype(kind.np, copy=False), kind, self)


def _crossed(left: Values, right: Values, dim: int) -> Values:
    """The cross product. Of floats and doubles the first of two products is not rounded: PyTorch's compiler fuses it.

    So a vector times itself is what its products' rounding left over. Those of complex64 are all rounded.
    """
    if left.dtype not in (np.float32, np.float64, np.complex64) or not left.size:
        return np.cross(left, right, axis=dim) if left.size else np.empty(left.shape, left.dtype)
    result = np.empty(left.shape, left.dtype)
    parts, a, b = (np.moveaxis(x, dim, 0) for x in (result, left, right))
    with np.errstate(all="ignore"):
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            if left.dtype.kind == "c":
                parts[i] = separately(a[j], b[k]) - separately(a[k], b[j])
            else:
                parts[i] = fused(a[j], b[k], -(a[k] * b[j]), left.dtype)
    return result


linalg_cross: Op = define(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    doc="The cross product of vectors of three elements.",
    run=_linalg_cross,
    grads={
        "self": lambda grad, other, dim: linalg_cross.call(conj(other), grad, dim),
        "other": lambda grad, self, dim: linalg_cross.call(grad, conj(self), dim),
    },
    samples=[((4, 3), (4, 3))],
    namespace="torch.linalg",
    method=False,
)


def _cross(self: Tensor, other: Tensor, dim: int | None = None, out: Tensor | None = None) -> Tensor:
    if dim is None:
        if out is None:  # with out= PyTorch says nothing
            _warn_of_no_dim()
        dim = next((d for d, n in enumerate(self.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross.call(self, other, dim)  # type: ignore[no-any-return]


def _warn_of_no_dim() -> None:
    warn_once(
        internal(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim "
            "explicitly or simply use torch.linalg.cross.\nThe default value of dim will change to agree with that "
            "of linalg.cross in a future release.",
            "aten/src/ATen/native/Cross.cpp:63",
        )
    )


define(
    "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    doc="The cross product of vectors of three elements.",
    composite=lambda self, other, dim: _cross(self, other, dim),
    out=Out(_cross),
    samples=[((4, 3), (4, 3), 1)],
)
