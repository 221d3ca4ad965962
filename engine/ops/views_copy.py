"""Views that give copies (``view_copy``, ``squeeze_copy``…), and the scatters that write into where a view reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.run import cast, resolved
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops import views, views_dtype, views_select, views_split
from stridescope.engine.storage import Storage
from stridescope.engine.tensor import Tensor, canonical, fresh, over

Formula = Callable[..., Any]


def _copy(tensor: Tensor) -> Tensor:
    array = resolved(tensor)
    return fresh(canonical(np.ascontiguousarray(array).reshape(array.shape).copy()), tensor.dtype, tensor.device)


def _define_copy(op: Op, name: str = "") -> Op:
    """Declare the ``_copy`` form of a view op: same rule, same gradient, memory of its own."""
    schema = op.schema
    name = name or schema.name
    head = schema.text.replace("(a -> *)", "").replace("(a)", "").replace(schema.name, f"{name}_copy", 1)

    def run(self: Tensor, *args: Any) -> Any:
        seen = op.call(self.detach(), *args)
        return tuple(_copy(part) for part in seen) if isinstance(seen, tuple) else _copy(seen)

    derivative = op.derivative
    return define(
        head,
        doc=f"A copy of what {name} shows.",
        run=run,
        grads={} if derivative is None else {", ".join(f.inputs): f.function for f in derivative.formulas},
        node=f"{derivative.name}_copy" if derivative is not None else None,
        method=False,
    )


COPIED = (
    views.transpose, views.t, views.permute, views_dtype.view_dtype, views.view, views.expand_, views.unsqueeze,
    views.squeeze, views.squeeze_dim, views.squeeze_dims, views_select.select, views_select.slice_,
    views_select.diagonal, views_select.unfold, views_select.as_strided, views_split.split_size,
    views_split.split_with_sizes, views_split.unbind,
)  # fmt: skip
COPIES: dict[str, Op] = {op.schema.name: _define_copy(op) for op in COPIED}
define(
    "alias_copy(Tensor self) -> Tensor",
    doc="A copy.",
    run=_copy,
    grads={"self": lambda grad: grad},
    node="AliasBackward0_copy",
    method=False,
)
define("detach_copy(Tensor self) -> Tensor", doc="A copy without history.", run=_copy, method=False)


def _narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    if dim >= self._array.ndim > 0:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if length < 0 and self._array.ndim:
        size = self._array.shape[wrap_dim(dim, self._array.ndim)]
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return _copy(views_select.narrow.call(self.detach(), dim, start, length))


define(
    "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
    doc="A copy of length elements of a dim, from start on.",
    run=lambda self, dim, start, length: _narrow_copy(self, dim, start, length),
    grads={
        "self": lambda grad, self_sym_sizes, dim, start, length: views_select.slice_backward.call(
            grad, self_sym_sizes, dim, start, (start % self_sym_sizes[dim] if start < 0 else start) + length, 1
        )
    },
)


# ---- scatters: a copy of self with src written where the view reads --------------------------------------------------


def _same_layout(self: Tensor) -> Tensor:
    """A copy that keeps strides and offset: of the whole storage, unless elements are read twice."""
    if 0 in self._array.strides and self._array.size:
        return _copy(self)
    storage = self.storage_
    copied = over(Storage(storage.raw.copy(), storage.device), self.layout_, self.dtype)
    copied._conj, copied._neg = self._conj, self._neg
    return copied


SPREAD_OUT = (
    "!self.requires_grad() || self.is_contiguous() INTERNAL ASSERT FAILED at "
    '"/__w/pytorch/pytorch/aten/src/ATen/native/TensorShape.cpp":4754, please report a bug to PyTorch. '
    "as_strided_scatter is currently only supported for contiguous inputs"
)


def _scattered(op: Op) -> Any:
    def run(self: Tensor, src: Tensor, *args: Any) -> Tensor:
        if self._requires_grad and op is views_select.as_strided and not self._array.flags.c_contiguous:
            raise RuntimeError(SPREAD_OUT)
        result = _same_layout(self)
        part = op.call(result, *args)
        if part._array.shape != src._array.shape:
            raise RuntimeError(
                f"expected src to have a size equal to the slice of self. src size = {list(src._array.shape)}, "
                f"slice size = {list(part._array.shape)}"
            )
        part._array[...] = cast(resolved(src), self.dtype)
        result._version_counter = None
        return result

    return run


def _define_scatter(name: str, arguments: str, op: Op, own: Formula, source: Formula) -> Op:
    return define(
        f"{name}(Tensor self, Tensor src, {arguments}) -> Tensor",
        doc=f"A copy of self with src written where {op.schema.name} reads.",
        run=_scattered(op),
        grads={"self": own, "src": source},
    )


def _without(grad: Tensor, op: Op, scatter: Op, *args: Any) -> Tensor:
    """The gradient with zeros where ``src`` was written."""
    part = op.call(grad.detach(), *args)
    return scatter.call(grad, part.new_zeros(part._array.shape), *args)  # type: ignore[no-any-return]


def _only_part(grad: Tensor, *args: Any) -> Any:
    """What PyTorch gives for ``as_strided_scatter``: the gradient of the part, the rest left as it was made."""
    part = views_select.as_strided.call(grad, *args)
    return as_strided_scatter.call(grad.new_zeros(grad._array.shape), part, *args)


select_scatter: Op = _define_scatter(
    "select_scatter",
    "int dim, SymInt index",
    views_select.select,
    lambda grad, dim, index: _without(grad, views_select.select, select_scatter, dim, index),
    lambda grad, dim, index: grad.select(dim, index),
)
slice_scatter: Op = _define_scatter(
    "slice_scatter",
    "int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1",
    views_select.slice_,
    lambda grad, dim, start, end, step: _without(grad, views_select.slice_, slice_scatter, dim, start, end, step),
    lambda grad, dim, start, end, step: views_select.slice_.call(grad, dim, start, end, step),
)
diagonal_scatter: Op = _define_scatter(
    "diagonal_scatter",
    "int offset=0, int dim1=0, int dim2=1",
    views_select.diagonal,
    lambda grad, offset, dim1, dim2: _without(grad, views_select.diagonal, diagonal_scatter, offset, dim1, dim2),
    lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2),
)
as_strided_scatter: Op = _define_scatter(
    "as_strided_scatter",
    "SymInt[] size, SymInt[] stride, SymInt? storage_offset=None",
    views_select.as_strided,
    lambda grad, size, stride, storage_offset: _only_part(grad.contiguous(), size, stride, storage_offset),
    lambda grad, size, stride, storage_offset: grad.contiguous().as_strided(size, stride, storage_offset),
)
