"""Picking out elements: nonzero, argwhere, masked_select, index_select."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.autograd.blank import zeros, zeros_like
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out import written
from stridescope.engine.dispatch.out_rule import Gradients, Out
from stridescope.engine.dispatch.overlap import refuse_internal_overlap
from stridescope.engine.dispatch.parser import Function
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import int64
from stridescope.engine.layout import broadcast_shapes, strided, wrap_dim
from stridescope.engine.ops.valueless import need_values
from stridescope.engine.tensor import Tensor, canonical, fresh


def _nonzero(self: Tensor) -> Tensor:
    need_values("nonzero", self)
    array = resolved(self)
    found = np.nonzero(array) if array.ndim else (np.empty(int(array != 0), np.int64),)
    columns = np.stack(found)[: array.ndim]  # PyTorch, too, keeps a column per dim together
    count = columns.shape[1]
    rows = np.ndarray((count, array.ndim), np.int64, np.ascontiguousarray(columns), 0, (8, 8 * count))
    return fresh(rows, int64, self.device)


nonzero = define(
    "nonzero(Tensor self) -> Tensor",
    doc="The index of every element that is not 0, one a row.",
    run=_nonzero,
    out=Out(memory_first=True, gradients=Gradients.FREE),
    samples=[((3, 4),)],
    function=False,
    method=False,
)
argwhere = define(
    "argwhere(Tensor self) -> Tensor",
    doc="The index of every element that is not 0, one a row.",
    composite=lambda self: nonzero.call(self),
)


def _in_parts(self: Tensor, as_tuple: bool) -> Any:
    found = nonzero.call(self)
    if not as_tuple:
        return found
    return found.unbind(1) if self._array.ndim else (self.reshape((1,)).nonzero().reshape((-1,)),)


_nonzero_parts = define(
    "nonzero.as_tuple(Tensor self, *, bool as_tuple) -> Tensor[]",
    doc="The index of every element that is not 0, one tensor per dim.",
    composite=_in_parts,
    function=False,
    method=False,
)
_nonzero_either = define(
    "nonzero.either(Tensor self, *, bool as_tuple=False) -> Tensor[]",
    doc="The index of every element that is not 0, as rows or as one tensor per dim.",
    composite=_in_parts,
    function=False,
    method=False,
)
# The forms of the function and of the method, which say what is wrong with their arguments.
_FUNCTION = Function("nonzero", [_nonzero_either], method=False)
_METHOD = Function("nonzero", [nonzero, _nonzero_parts], method=True)


def _nonzero_of(as_method: bool, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    as_tuple, out = options.get("as_tuple", False), options.get("out")
    usual = len(args) == 1 and isinstance(args[0], Tensor) and as_tuple.__class__ is bool
    if as_method and not (usual and options.keys() <= {"as_tuple"}):
        return _METHOD(*args, **options)
    if not usual or options.keys() - {"as_tuple", "out"}:
        return _FUNCTION(*args, **{name: value for name, value in options.items() if name != "out"})
    if not (out is None or isinstance(out, Tensor)):
        raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type(out).__name__}")
    if out is None:
        return _in_parts(args[0], as_tuple)
    if as_tuple:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    found = nonzero.call(args[0])
    refuse_internal_overlap(out)
    return written(out, found, "nonzero", args)


def nonzero_of(*args: Any, **options: Any) -> Any:
    """``torch.nonzero``: the index of every element that is not 0, as rows or as one tensor per dim (``as_tuple``)."""
    if "input" in options and not args:
        args = (options.pop("input"),)
    return _nonzero_of(False, args, options)


def _nonzero_method(self: Tensor, *args: Any, **options: Any) -> Any:
    """The index of every element that is not 0, as rows or as one tensor per dim (``as_tuple``)."""
    return _nonzero_of(True, (self, *args), options)


def _masked_select(self: Tensor, mask: Tensor) -> Tensor:
    need_values("masked_select", self, mask)
    if mask.dtype.name not in ("bool",):
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shapes(mask._array.shape, self._array.shape)
    values = np.broadcast_to(resolved(self), shape)[np.broadcast_to(mask._array, shape)]
    return fresh(values, self.dtype, self.device)


def _masked_grad(grad: Tensor, self: Tensor, mask: Tensor) -> Tensor:
    shape = broadcast_shapes(self._array.shape, mask._array.shape)
    whole = zeros_like(self) if shape == self._array.shape else zeros(shape, self)
    return whole.masked_scatter_(mask, grad)  # type: ignore[no-any-return]


masked_select = define(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    doc="The elements where mask is true, as a 1-d tensor.",
    run=_masked_select,
    out=Out(memory_first=True, apart=True, dtype_first=("masked_select: expected",)),
    grads={"self": lambda grad, self, mask: _masked_grad(grad, self, mask)},
    samples=[],
)


def _index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    along = wrap_dim(dim, self._array.ndim)
    if index._array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not self._array.ndim and index._array.size != 1:
        count = index._array.size
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {count} value(s)")
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    places = index._array.reshape(-1)
    array = resolved(self)
    size = array.shape[along] if array.ndim else 1
    if array.ndim > 1 and places.size and not size:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    bad = places[(places < 0) | (places >= size)]
    if bad.size and (along == 1 or (array.ndim > 1 and not array.size)):
        raise RuntimeError(f"INDICES element is out of DATA bounds, id={bad[0]} axis_dim={size}")
    if bad.size:
        raise IndexError("index out of range in self")
    if not array.ndim:
        return fresh(array.copy(), self.dtype, self.device)
    return fresh(canonical(np.ascontiguousarray(np.take(array, places, along))), self.dtype, self.device)


def _index_select_grad(grad: Tensor, sizes: tuple[int, ...], dim: int, index: Tensor) -> Tensor:
    if not sizes:
        return grad.reshape(())  # type: ignore[no-any-return]
    zeros = grad.new_zeros(sizes, dtype=grad.dtype, layout=strided, device=grad.device)
    index = index if index._array.ndim else index.reshape((1,))
    return zeros.index_add_(dim, index, grad)  # type: ignore[no-any-return]


index_select = define(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    doc="The slices along a dim that the index names.",
    run=_index_select,
    out=Out(
        memory_first=True, apart=True, dtype_first=("Dimension", "index_select(): Expected", "index_select(): Index")
    ),
    grads={"self": lambda grad, self_sym_sizes, dim, index: _index_select_grad(grad, self_sym_sizes, dim, index)},
    samples=[],
)
FUNCTIONS: dict[str, Any] = {"nonzero": nonzero_of}
METHODS: dict[str, Any] = {"nonzero": _nonzero_method}
