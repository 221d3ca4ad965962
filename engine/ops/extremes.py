"""Reductions that pick: max, min, amax, amin, argmax, argmin, aminmax; and the logical any, all, count_nonzero."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.blank import zeros
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import FREE, Gradients, Out, own_dtype
from stridescope.engine.dispatch.run import cast, resolved
from stridescope.engine.dtype import BOOL, bool_, int64, scalar_name, uint8
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops.reduce import axes, unreduced, wrapped
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor


def chosen_grad(grad: Tensor, dim: int, indices: Tensor, sizes: Sequence[int], keepdim: bool) -> Tensor:
    """The gradient goes to the chosen elements (``value_selecting_reduction_backward``)."""
    if not keepdim and sizes:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    # PyTorch counts filling it with zeros as a write of its own, and writes the gradient into it.
    return grad.new_zeros(tuple(sizes)).zero_().scatter_(dim, indices, grad)  # type: ignore[no-any-return]


def nonempty_dim(name: str, array: Array, dim: int) -> int:
    """The wrapped dim; raises IndexError when it has no element to choose."""
    dim = wrap_dim(dim, array.ndim)
    if array.ndim and not array.shape[dim]:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
    return dim


def comparable(array: Array) -> Array:
    """The array in a dtype whose order NumPy's sorting and searching understand."""
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array


def shared_evenly(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """Equal elements share the gradient (``evenly_distribute_backward``)."""
    mask = (self == result).logical_or(self.isnan()) if bool(result.isnan()) else self == result
    return zeros(self.shape, self).masked_fill_(mask, grad / mask.sum())  # type: ignore[no-any-return]


def _whole(name: str, reduce: Callable[..., Any]) -> Callable[..., Tensor]:
    def run(self: Tensor) -> Tensor:
        if not self._array.size:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument."
            )
        if self.dtype.is_complex:
            raise not_implemented(f"{name}_all", self.dtype)
        return wrapped(reduce(self._array), self.dtype, self)

    return run


def _along(name: str, pick: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
        array = resolved(self)
        dim = nonempty_dim(name, array, dim)
        if self.dtype.is_complex:
            raise RuntimeError(f"{name}(): does not support complex input")
        if not array.ndim:
            return wrapped(array.copy(), self.dtype, self), wrapped(np.zeros((), np.int64), int64, self)
        if not array.size:
            shape = [1 if d == dim else n for d, n in enumerate(array.shape) if keepdim or d != dim]
            return wrapped(np.empty(shape, array.dtype), self.dtype, self), wrapped(
                np.empty(shape, np.int64), int64, self
            )
        where = np.expand_dims(pick(comparable(array), dim), dim)
        values = np.take_along_axis(array, where, dim)
        if not keepdim:
            where, values = where.squeeze(dim), values.squeeze(dim)
        return wrapped(values, self.dtype, self), wrapped(where, int64, self)

    return run


def _amax_grad(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    grad, result = unreduced(grad, self.shape, dim, keepdim), unreduced(result, self.shape, dim, keepdim)
    mask = result == self
    return mask * grad / mask.sum(axes(dim, self._array.ndim), True)  # type: ignore[no-any-return]


def _amax(name: str, label: str, reduce: Callable[..., Any]) -> Callable[..., Tensor]:
    def run(self: Tensor, dim: Sequence[int], keepdim: bool) -> Tensor:
        array = resolved(self)
        if not array.size:
            _check_empty(name, array, dim)
        over = axes(dim, array.ndim)
        if self.dtype.is_complex and array.size:
            raise not_implemented(label, self.dtype)
        return wrapped(reduce(array, over, keepdims=keepdim) if array.ndim else array.copy(), self.dtype, self)

    return run


def _check_empty(name: str, array: Array, dim: Sequence[int]) -> None:
    if not dim:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )
    for one in dim:
        if not array.shape[wrap_dim(one, array.ndim)]:
            raise IndexError(f"{name}(): Expected reduction dim {one} to have non-zero size.")


def _arg(name: str, pick: Callable[..., Any]) -> Callable[..., Tensor]:
    def run(self: Tensor, dim: int | None, keepdim: bool) -> Tensor:
        if self.dtype.category == BOOL or self.dtype.is_complex:
            raise RuntimeError(f"{name}(): does not support {'complex' if self.dtype.is_complex else 'bool'} input")
        array = comparable(resolved(self))
        if dim is None:
            if not array.size:
                raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            return wrapped(_kept(np.asarray(pick(array.reshape(-1), 0)), array.ndim, keepdim), int64, self)
        dim = nonempty_dim(name, array, dim)
        if not array.ndim:
            return wrapped(np.zeros((), np.int64), int64, self)
        where = pick(array, dim)
        return wrapped(np.expand_dims(where, dim) if keepdim else where, int64, self)

    return run


def _kept(value: Array, ndim: int, keepdim: bool) -> Array:
    return value.reshape((1,) * ndim) if keepdim else value


for _name, _reduce, _pick, _word in (
    ("max", np.max, np.argmax, "largest"),
    ("min", np.min, np.argmin, "smallest"),
):
    define(
        f"{_name}(Tensor self) -> Tensor",
        doc=f"The {_word} element.",
        run=_whole(_name, _reduce),
        node=f"{_name.capitalize()}Backward1",
        grads={"self": shared_evenly},
        samples=[((3, 4),)],
    )
    define(
        f"{_name}.other(Tensor self, Tensor other) -> Tensor",
        doc=f"The {_word} of each pair.",
        composite=(lambda self, other: self.maximum(other)) if _name == "max" else (
            lambda self, other: self.minimum(other)
        ),
        samples=[((3, 4), (4,))],
    )  # fmt: skip
    define(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        doc=f"The {_word} elements along a dim, and where they stand.",
        run=_along(_name, _pick),
        node=f"{_name.capitalize()}Backward0",
        grads={
            "self": lambda grad, dim, indices, self_sym_sizes, keepdim: chosen_grad(
                grad, dim, indices, self_sym_sizes, keepdim
            )
        },
        samples=[((3, 4), 1)],
    )
    define(
        f"a{_name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        doc=f"The {_word} elements along some dims; equal ones share the gradient.",
        run=_amax(f"a{_name}", f"{_name}_values_cpu", _reduce),
        out=Out(dtype_at_once=own_dtype),
        grads={"self": _amax_grad},
        samples=[((3, 4), (1,)), ((3, 4), (0,), True)],
    )
    define(
        f"arg{_name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        doc=f"Where the {_word} element stands.",
        run=_arg(f"arg{_name}", _pick),
        out=FREE,
        samples=[((3, 4),), ((3, 4), 1)],
    )


def _aminmax(self: Tensor, dim: int | None, keepdim: bool) -> tuple[Tensor, Tensor]:
    array = resolved(self)
    if dim is None:
        if not array.size:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
        over = tuple(range(array.ndim))
    else:
        dim = wrap_dim(dim, array.ndim)
        if array.ndim and not array.shape[dim]:
            raise IndexError(f"aminmax: Expected reduction dim {dim} to have non-zero size.")
        over = axes((dim,), array.ndim)
    if self.dtype.is_complex:
        if dim is not None and not array.ndim:
            raise RuntimeError(f"aminmax not implemented for {scalar_name(self.dtype)}")
        raise not_implemented("aminmax_cpu", self.dtype)
    ends: tuple[Any, Any] = (np.min, np.max)
    if dim is not None and array.size:
        ends = (functools.partial(_first_of_equals, np.argmin), functools.partial(_first_of_equals, np.argmax))
    low, high = (f(array, over, keepdims=keepdim) if array.ndim else array.copy() for f in ends)
    return wrapped(low, self.dtype, self), wrapped(high, self.dtype, self)


def _first_of_equals(pick: Callable[..., Any], array: Array, over: tuple[int, ...], keepdims: bool) -> Array:
    """An extreme along one dim; of +0 and -0 the one that stands first."""
    (dim,) = over
    found = np.take_along_axis(array, np.expand_dims(pick(comparable(array), dim), dim), dim)
    return found if keepdims else found.squeeze(dim)


def _aminmax_grad(
    grads: Sequence[Tensor | None], self: Tensor, min: Tensor, max: Tensor, dim: int | None, keepdim: bool
) -> Tensor | None:
    total: Tensor | None = None
    for grad, found in zip(grads, (min, max), strict=True):
        if grad is not None:
            part = _amax_grad(grad, self, found, None if dim is None else (dim,), keepdim)
            total = part if total is None else total + part
    return total


define(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    doc="The smallest and the largest elements in one go.",
    run=_aminmax,
    grads={"self": _aminmax_grad},
    samples=[((3, 4),)],
)


# ---- logic -------------------------------------------------------------------------------------------------------


def _logic_into(run: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What ``out=`` writes along dims: bytes are read as bytes, so that 256 and 0.5 count as zero."""

    def into(self: Tensor, dim: Any, keepdim: bool, out: Tensor) -> Tensor:
        return run(_as_bytes(self) if out.dtype is uint8 and self._array.size != 1 else self, dim, keepdim)

    return into


def _as_bytes(tensor: Tensor) -> Tensor:
    return wrapped(cast(resolved(tensor), uint8), uint8, tensor)


def _logic(reduce: Callable[..., Any]) -> Callable[..., Tensor]:
    def run(self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        array = resolved(self)
        over = tuple(range(array.ndim)) if dim is None else axes(dim, array.ndim) if dim != () else ()
        result = reduce(np.not_equal(array, 0), axis=over, keepdims=keepdim)
        return wrapped(np.asarray(result), uint8 if self.dtype is uint8 else bool_, self)

    return run


def _logic_out(into: Callable[..., Any] | None = None) -> Out:
    return Out(into, dtype_at_once=lambda *_: bool_, gradients=Gradients.FREE)


for _name, _logical, _doc in (
    ("all", np.all, "Whether no element is zero."),
    ("any", np.any, "Whether an element is not zero."),
):
    define(
        f"{_name}(Tensor self) -> Tensor",
        doc=_doc,
        run=_logic(_logical),
        out=_logic_out(),
        samples=[((3, 4),)],
    )
    define(
        f"{_name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        doc=_doc,
        run=_logic(_logical),
        out=_logic_out(_logic_into(_logic(_logical))),
        samples=[((3, 4), (0, 1))],
    )
    define(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        doc=_doc,
        run=_logic(_logical),
        out=_logic_out(_logic_into(_logic(_logical))),
        samples=[((3, 4), 1)],
    )


def _count(self: Tensor, dim: Any = None) -> Tensor:
    array = resolved(self)
    return wrapped(np.add.reduce(np.not_equal(array, 0), axes(dim, array.ndim), dtype=np.int64), int64, self)


define(
    "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    doc="How many elements are not zero along some dims.",
    run=_count,
)
define(
    "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    doc="How many elements are not zero.",
    run=lambda self, dim: _count(self, None if dim is None else (dim,)),
    samples=[((3, 4),)],
)
