"""Indexing: ``t[…]`` and ``t[…] = value``.

Integers, slices, None and Ellipsis make views; tensors, lists and bools among the keys gather what the views left
(:mod:`stridescope.engine.ops.indexing_advanced`).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.converters import is_number
from stridescope.engine.dispatch.op import define
from stridescope.engine.dtype import FLOAT, INTEGER, int64, scalar_name
from stridescope.engine.ops.filling import fill_with
from stridescope.engine.ops.from_data import array_of
from stridescope.engine.ops.indexing_advanced import index, index_put_
from stridescope.engine.ops.to_python import before_reading, is_watched
from stridescope.engine.ops.views import expand_, unsqueeze, view
from stridescope.engine.ops.views_select import select, slice_
from stridescope.engine.tensor import Tensor, fresh
from stridescope.engine.warn import internal, warn

alias = define(
    "alias(Tensor(a) self) -> Tensor(a)",
    doc="The same elements as another tensor object.",
    view=lambda layout: layout,
    grads={"self": lambda grad: grad},
    method=False,
    function=False,
)
_WORD = "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices"


def getitem(self: Tensor, key: Any) -> Any:
    """``self[key]``."""
    kind = key.__class__
    if kind is int:
        return _select(self, 0, key, 0)
    if kind is slice:
        return _slice(self, 0, key, keep_whole=True)
    if key is None:
        return unsqueeze.call(self, 0)
    if key is Ellipsis:
        return alias.call(self)
    result, gathered = _applied(self, _keys(key))
    if gathered:
        return index.call(result, _padded(gathered))
    return alias.call(result) if result is self else result


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value``."""
    source = _value(self, value)
    if key is False:
        return
    if key is True:  # alone it only adds a dim, as None does
        key = None
    if key is Ellipsis:
        _copy_to(self, source)
        return
    kind = key.__class__
    if kind is int or kind is slice:
        _copy_to(_select(self, 0, key, 0) if kind is int else _slice(self, 0, key), source)
        return
    target, gathered = _applied(self, _keys(key))
    if not gathered:
        _copy_to(target, source)
        return
    index_put_.call(target, _padded(gathered), _without_leading_ones(source), False)


def _keys(key: Any) -> tuple[Any, ...]:
    if isinstance(key, tuple):
        return key
    if isinstance(key, Tensor) or not _is_sequence(key):
        return (key,)
    return _as_tuple(key)


def _is_sequence(key: Any) -> bool:
    return hasattr(key, "__getitem__") and hasattr(key, "__len__") and not isinstance(key, (dict, np.generic))


def _as_tuple(key: Any) -> tuple[Any, ...]:
    """A list of at most 31 keys that holds slices, None or sequences counts as a tuple, as it did in Numeric."""
    if isinstance(key, np.ndarray) or len(key) >= 32:
        return (key,)
    for item in key:
        plain = isinstance(item, (slice, Tensor)) or item is None or item is Ellipsis
        if plain or _is_sequence(item):
            line = 359 if plain and not isinstance(item, Tensor) else 349
            _warn_of_list(line)
            return tuple(key)
    return (key,)


def _warn_of_list(line: int) -> None:
    warn(
        internal(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch "
            "2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
            "x[torch.tensor(seq)], which will result either in an error or a different result",
            f"torch/csrc/autograd/python_variable_indexing.cpp:{line}",
        )
    )


def _dims_used(keys: Sequence[Any]) -> int:
    used = 0
    for key in keys:
        if isinstance(key, Tensor):
            used += _dims_of(key)
        elif key is not None and key is not Ellipsis and not isinstance(key, (bool, np.bool_)):
            used += 1
    return used


def _applied(self: Tensor, keys: Sequence[Any]) -> tuple[Tensor, dict[int, Tensor]]:
    """Apply the keys that make views; the rest is returned as dim -> index tensor of the view."""
    used = _dims_used(keys)
    ndim = self._array.ndim
    if used > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    result, dim = self, 0
    gathered: dict[int, Tensor] = {}
    for position, key in enumerate(keys):
        if key is Ellipsis:
            dim += ndim - used
        elif key is None:
            result, dim = unsqueeze.call(result, dim), dim + 1
        elif isinstance(key, slice):
            result, dim = _slice(result, dim, key), dim + 1
        else:
            result, dim = _one(result, dim, position, key, gathered)
    return result, gathered


def _one(result: Tensor, dim: int, position: int, key: Any, gathered: dict[int, Tensor]) -> tuple[Tensor, int]:
    """Apply an integer, bool, tensor or list; returns the view and the next dim."""
    if isinstance(key, (bool, np.bool_)):
        return _bool_dim(result, dim, bool(key), gathered)
    if isinstance(key, Tensor):
        if not key._array.ndim and key.dtype.category <= INTEGER:
            if key.dtype.name in ("bool", "uint8"):
                return _bool_dim(result, dim, bool(key._array), gathered)
            if not (before_reading and is_watched(key)):
                return _select(result, dim, int(key._array), position), dim
        gathered[dim] = key
        return result, dim + _dims_of(key)
    if isinstance(key, (int, np.integer)):
        return _select(result, dim, int(key), position), dim
    if _is_sequence(key) or isinstance(key, np.ndarray):
        return _one(result, dim, position, _tensor_of(key), gathered)
    if hasattr(key, "__index__"):
        return _select(result, dim, operator.index(key), position), dim
    raise IndexError(f"{_WORD} (got {type(key).__name__})")


def _bool_dim(result: Tensor, dim: int, value: bool, gathered: dict[int, Tensor]) -> tuple[Tensor, int]:
    """A bool makes a dim of size 1 or 0."""
    gathered[dim] = fresh(np.zeros(1 if value else 0, np.int64), int64)
    return unsqueeze.call(result, dim), dim + 1


def _tensor_of(key: Any) -> Tensor:
    if isinstance(key, np.ndarray):
        return fresh(*array_of(key, None))
    if isinstance(key, str):
        raise TypeError("new(): invalid data type 'str'")
    data = list(key) if not isinstance(key, (list, tuple)) else key
    array, kind = array_of(data, None)
    return fresh(array.astype(np.int64), int64) if not array.size or kind.category == FLOAT else fresh(array, kind)


def _select(self: Tensor, dim: int, index: int, place: int) -> Tensor:
    """One index along a dim; ``place`` is where the key stands among the keys, which is what the refusal names."""
    shape = self._array.shape
    if not shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    size = shape[dim] if dim < len(shape) else 0  # several ellipses may lead beyond the last dim
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {size}")
    return select.call(self, dim, index)  # type: ignore[no-any-return]


def _bound(value: Any) -> Any:
    if value is None or value.__class__ is int:
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def _slice(self: Tensor, dim: int, key: slice, keep_whole: bool = False) -> Tensor:
    start, stop, step = _bound(key.start), _bound(key.stop), 1 if key.step is None else _bound(key.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    if not self._array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    size = self._array.shape[dim]
    whole = (start is None or start == 0) and (stop is None or stop >= size) and step == 1
    if whole and not keep_whole:
        return self
    start = 0 if start is None else start
    return slice_.call(self, dim, start, (1 << 63) - 1 if stop is None else stop, step)  # type: ignore[no-any-return]


def _dims_of(key: Tensor) -> int:
    """How many dims of the indexed tensor a key tensor stands for: a mask for as many as it has."""
    return key._array.ndim if key.dtype.name in ("bool", "uint8") else 1


def _padded(gathered: dict[int, Tensor]) -> tuple[Tensor | None, ...]:
    """The index tensors in the order of the dims, with None for each dim that none of them stands for."""
    indices: list[Tensor | None] = []
    next_dim = 0
    for dim in sorted(gathered):
        indices += [None] * (dim - next_dim)
        indices.append(gathered[dim])
        next_dim = dim + _dims_of(gathered[dim])
    return tuple(indices)


def _value(self: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if is_number(value):
        number = value.item() if isinstance(value, np.generic) else value
        return self.new_full((), number)  # type: ignore[no-any-return]
    kind = "cuda." if self.device.type == "cuda" else ""
    raise TypeError(f"can't assign a {type(value).__module__ + '.' if isinstance(value, np.ndarray) else ''}"
                    f"{type(value).__name__} to a torch.{kind}{scalar_name(self.dtype)}Tensor")  # fmt: skip


def _leading_ones(tensor: Tensor) -> int:
    shape = tensor._array.shape
    return next((i for i, n in enumerate(shape) if n != 1), len(shape))


def _without_leading_ones(tensor: Tensor) -> Tensor:
    first = _leading_ones(tensor)
    return view.call(tensor, tensor._array.shape[first:]) if first else tensor


def _copy_to(target: Tensor, source: Tensor) -> None:
    """Write ``source`` over a view, broadcast to it."""
    if target._array.shape == source._array.shape:
        target.copy_(source)
    elif not source._array.ndim:
        fill_with.call(target, source)
    else:
        shape = target._array.shape
        part = view.call(source, source._array.shape[_leading_ones(source) :])
        target.copy_(part if part._array.shape == shape else expand_.call(part, shape))


METHODS: dict[str, Any] = {"__getitem__": getitem, "__setitem__": setitem}
