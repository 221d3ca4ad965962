"""Finding: unique elements, positions in sorted sequences, membership, one-hot rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import FREE
from stridescope.engine.dispatch.parser import Function
from stridescope.engine.dispatch.promote import result_type
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dispatch.run import cast, resolved
from stridescope.engine.dtype import BOOL, COMPLEX, bool_, int32, int64, scalar_name
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops.extremes import comparable
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.ops.valueless import need_values
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, bump_version, fresh
from stridescope.engine.warn import internal, warn_once

Parts = tuple[Tensor, Tensor, Tensor]

# ---- unique ------------------------------------------------------------------------------------------------------


F = TypeVar("F", bound=Callable[..., Any])


def _no_derivative(name: str) -> Any:
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


def _whole(array: Any) -> Array:
    return np.asarray(array).astype(np.int64)


def _unique(self: Tensor, sorted: bool, return_inverse: bool, return_counts: bool) -> Parts:
    need_values("_unique2", self)
    array = resolved(self)
    if self.dtype.is_complex:
        raise not_implemented("unique", self.dtype)
    _, first, inverse, counts = np.unique(
        comparable(array), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    values = array.reshape(-1)[first]
    back = inverse.reshape(array.shape) if return_inverse or return_counts else np.empty(0)
    return (
        wrapped(values, self.dtype, self),
        wrapped(_whole(back), int64, self),
        wrapped(_whole(counts if return_counts else np.empty(0)), int64, self),
    )


def _unique_dim(self: Tensor, dim: int, sorted: bool, return_inverse: bool, return_counts: bool) -> Parts:
    need_values("unique_dim", self)
    array = resolved(self)
    if self.dtype.is_complex:
        raise not_implemented("unique_dim", self.dtype)
    dim = wrap_dim(dim, array.ndim, scalar=False)
    _check_slices(array, dim)
    rows = comparable(_slices(array, dim))
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(rows.shape[0])
    return _runs(self, array, rows[order], order, dim)


def _check_slices(array: Array, dim: int) -> None:
    zeros = [d for d, n in enumerate(array.shape) if not n]
    if zeros and not (len(zeros) == 1 and zeros[0] == dim):
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
            if dim not in zeros
            else "Number of zero sized dimensions is more than one, so unique cannot be applied "
        )


def _slices(array: Array, dim: int) -> Array:
    """The slices along a dim as rows."""
    count = array.shape[dim]
    return np.moveaxis(array, dim, 0).reshape(count, array.size // count if count else 0)


def _runs(self: Tensor, array: Array, rows: Array, order: Array, dim: int) -> Parts:
    """The first slice of each run of equal ones, with each slice's run and the lengths of the runs."""
    count = rows.shape[0]
    new = np.ones(count, bool)
    if count > 1:
        new[1:] = np.any(rows[1:] != rows[:-1], axis=1)
    starts = np.flatnonzero(new)
    inverse = np.empty(count, np.int64)
    inverse[order] = np.cumsum(new) - 1
    lengths = np.diff(np.append(starts, count))
    values = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, dim, 0)[order[starts]]), 0, dim)
    return (
        fresh(values, self.dtype, self.device),
        wrapped(inverse, int64, self),
        wrapped(_whole(lengths), int64, self),
    )


def _consecutive(self: Tensor, return_inverse: bool, return_counts: bool, dim: int | None) -> Parts:
    need_values("unique_consecutive", self)
    array = resolved(self)
    if self.dtype.is_complex:
        raise not_implemented("unique", self.dtype)
    if dim is None:
        rows = array.reshape(-1, 1)
        values, inverse, counts = _runs(self, rows[:, 0], rows, np.arange(rows.shape[0]), 0)
        shaped = wrapped(inverse._array.reshape(array.shape), int64, self)
        return values, shaped if return_inverse else wrapped(np.empty(0, np.int64), int64, self), counts
    dim = wrap_dim(dim, array.ndim, scalar=False)
    _check_slices(array, dim)
    rows = _slices(array, dim)
    return _runs(self, array, rows, np.arange(rows.shape[0]), dim)


unique2 = define(
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
    "-> (Tensor, Tensor, Tensor)",
    doc="The different elements in order.",
    run=_unique,
    grads={"self": lambda grads: _no_derivative("_unique2")},
    method=False,
    differentiable_outputs=[0],
)
unique_dim = define(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
    "-> (Tensor, Tensor, Tensor)",
    doc="The different slices along a dim, in order.",
    run=_unique_dim,
    grads={"self": lambda grads: _no_derivative("unique_dim")},
    method=False,
    differentiable_outputs=[0],
)
consecutive = define(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) "
    "-> (Tensor, Tensor, Tensor)",
    doc="The elements without repetitions of the one before.",
    run=_consecutive,
    node="UniqueConsecutiveBackward0",
    grads={"self": lambda grads: _no_derivative("unique_consecutive")},
    method=False,
    function=False,
    differentiable_outputs=[0],
)


def _asked(parts: Parts, inverse: bool, counts: bool) -> Any:
    chosen = [parts[0], *([parts[1]] if inverse else []), *([parts[2]] if counts else [])]
    return chosen[0] if len(chosen) == 1 else tuple(chosen)


# By these the arguments are checked, and refused under their names.
_unique2_of = Function("_unique2", [unique2], method=False)
_unique_dim_of = Function("unique_dim", [unique_dim], method=False)
_consecutive_of = Function("unique_consecutive", [consecutive], method=False)


def _told_as(name: str) -> Callable[[F], F]:
    """A decorator: Python's own refusals of arguments call the function so."""

    def decorate(function: F) -> F:
        function.__qualname__ = name
        return function

    return decorate


@_told_as("_return_output")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """``torch.unique``: the different elements in order, and if asked where each stands and how often it occurs."""
    asked = {"sorted": sorted, "return_inverse": return_inverse, "return_counts": return_counts}
    parts = _unique2_of(input, **asked) if dim is None else _unique_dim_of(input, dim, **asked)
    return _asked(parts, return_inverse, return_counts)


@_told_as("_consecutive_return_output")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """``torch.unique_consecutive``: the elements without repetitions of the one before."""
    parts = _consecutive_of(input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return _asked(parts, return_inverse, return_counts)


@_told_as("Tensor.unique")
def _unique_method(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    return unique(self, sorted, return_inverse, return_counts, dim)


@_told_as("Tensor.unique_consecutive")
def _unique_consecutive_method(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    return unique_consecutive(self, return_inverse, return_counts, dim)


# ---- positions in a sorted sequence ------------------------------------------------------------------------------


def _side(right: bool, side: str | None) -> str:
    if side is None:
        return "right" if right else "left"
    if side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    return side


SCATTERED = (
    "torch.searchsorted(): {0} tensor is non-contiguous, this will lower the performance due to extra data copy when "
    "converting non-contiguous tensor to contiguous, please use contiguous {0} tensor if possible. This message will "
    "only appear once per program."
)


def _check_search(sequence: Tensor, values: Any, sorter: Tensor | None) -> None:
    a, b = list(sequence.shape), list(values.shape) if isinstance(values, Tensor) else []
    if not a:
        raise RuntimeError("torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is "
                           "1, but we got boundaries tensor dim(0)") if not b else RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")  # fmt: skip
    if not b and len(a) != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({len(a)}) and input value's dim(0) numel(1)"
        )
    if len(a) != 1 and a[:-1] != b[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {a} and input value tensor {b}"
        )
    if sorter is not None and list(sorter.shape) != a:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{a}and got sorter tensor {list(sorter.shape)}"
        )
    if sorter is not None and sorter.dtype is not int64:
        raise RuntimeError(
            f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {scalar_name(sorter.dtype)}"
        )


def _warn_of_copies(sequence: Tensor, values: Any, sorter: Tensor | None) -> None:
    """PyTorch lays out row by row what is not, and says so."""
    for name, tensor, line in (("input value", values, 32), ("boundary", sequence, 38), ("sorter", sorter, 44)):
        if isinstance(tensor, Tensor) and not tensor._array.flags.c_contiguous:
            warn_once(internal(SCATTERED.format(name), f"aten/src/ATen/native/BucketizationUtils.h:{line}"))


def _searchsorted(
    sequence: Tensor, values: Any, out_int32: bool, right: bool, side: str | None, sorter: Tensor | None
) -> Tensor:
    which = _side(right, side)
    _check_search(sequence, values, sorter)
    kind = result_type(sequence, values)
    if kind.category in (BOOL, COMPLEX) and not values._array.size:
        return fresh(np.zeros(values.shape, np.int32 if out_int32 else np.int64), int32 if out_int32 else int64)
    if not isinstance(values, Tensor) or values._array.size:
        _warn_of_copies(sequence, values, sorter)
    if kind.category in (BOOL, COMPLEX):
        raise not_implemented("searchsorted_out_cpu", kind)
    edges = resolved(sequence)
    if sorter is not None:
        edges = np.take_along_axis(edges, sorter._array, -1)
    edges = comparable(cast(edges, kind))
    wanted = comparable(cast(resolved(values) if isinstance(values, Tensor) else np.asarray(values), kind))
    result = _found(edges, wanted, which)
    return wrapped(result, int32 if out_int32 else int64, sequence)


def _found(edges: Array, wanted: Array, side: Any) -> Array:
    if edges.ndim == 1:
        return np.asarray(np.searchsorted(edges, wanted, side=side))
    count = math.prod(edges.shape[:-1])
    rows, asked = edges.reshape(count, edges.shape[-1]), wanted.reshape(count, wanted.shape[-1])
    found = [np.searchsorted(row, ask, side=side) for row, ask in zip(rows, asked, strict=True)]
    return np.array(found, np.int64).reshape(wanted.shape)


for _overload, _kind in (("Tensor", "Tensor"), ("Scalar", "Scalar")):
    define(
        f"searchsorted.{_overload}(Tensor sorted_sequence, {_kind} self, *, bool out_int32=False, bool right=False, "
        "str? side=None, Tensor? sorter=None) -> Tensor",
        doc="Where values would have to be put into a sorted sequence.",
        run=_searchsorted,
        out=FREE,
        method=False,
    )


def _bucketize(self: Any, boundaries: Tensor, out_int32: bool, right: bool) -> Tensor:
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return _searchsorted(boundaries, self, out_int32, right, None, None)


for _overload, _kind in (("Tensor", "Tensor"), ("Scalar", "Scalar")):
    define(
        f"bucketize.{_overload}({_kind} self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        doc="Which bucket between the boundaries each value falls into.",
        run=_bucketize,
        out=FREE,
        method=False,
    )

# ---- membership --------------------------------------------------------------------------------------------------


def _isin(elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Tensor:
    tensors = [t for t in (elements, test_elements) if isinstance(t, Tensor)]
    for tensor in tensors:
        if tensor.dtype is bool_ or tensor.dtype.is_complex:
            raise RuntimeError(f"Unsupported input type encountered for isin(): {scalar_name(tensor.dtype)}")
    kind = result_type(elements, test_elements)
    a, b = (cast(resolved(t) if isinstance(t, Tensor) else np.asarray(t), kind) for t in (elements, test_elements))
    if Interceptors.before and a.size and b.size >= 10 * a.size**0.145:
        op_call("cat")(
            [tensor.flatten() for tensor in tensors]
        )  # so many are sorted together, which autocast may refuse
    found = np.isin(comparable(a), comparable(b), invert=invert)
    return wrapped(np.asarray(found), bool_, tensors[0])


for _overload, _types in (
    ("Tensor_Tensor", "Tensor elements, Tensor test_elements"),
    ("Tensor_Scalar", "Tensor elements, Scalar test_element"),
    ("Scalar_Tensor", "Scalar element, Tensor test_elements"),
):
    define(
        f"isin.{_overload}({_types}, *, bool assume_unique=False, bool invert=False) -> Tensor",
        doc="Whether each element is among the test elements.",
        run=_isin,
        out=FREE,
        method=False,
    )


def _nonzero_static(self: Tensor, size: int, fill_value: int) -> Tensor:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = np.argwhere(resolved(self) != 0)[:size]
    result = np.full((size, self._array.ndim), fill_value, np.int64)
    result[: found.shape[0]] = found
    return wrapped(result, int64, self)


define(
    "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
    doc="The first positions of the elements that are not zero, in a result of fixed size.",
    run=_nonzero_static,
)


def _one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    if self.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    array = self._array
    if not array.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if array.size and array.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(array.max()) + 1
    elif num_classes < 1 and array.size:
        raise RuntimeError("num_classes should be positive")
    elif array.size and array.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    result = wrapped((array[..., None] == np.arange(num_classes)).astype(np.int64), int64, self)
    for _ in range(2 if array.size else 0):  # PyTorch fills zeros and scatters ones
        bump_version(result)
    return result


define(
    "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    doc="Rows with a single 1 where each class number says.",
    run=_one_hot,
    method=False,
    namespace="torch.nn.functional",
)

FUNCTIONS: dict[str, Any] = {"unique": unique, "unique_consecutive": unique_consecutive}
METHODS: dict[str, Any] = {"unique": _unique_method, "unique_consecutive": _unique_consecutive_method}
