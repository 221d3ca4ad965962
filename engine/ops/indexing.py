"""Indexing: ``t[…]`` and ``t[…] = value``."""

from __future__ import annotations

from typing import Any

from stridescope.engine.ops.views import select, slice_, unsqueeze
from stridescope.engine.tensor import Tensor, alias


def getitem(self: Tensor, key: Any) -> Any:
    """``self[key]`` for integers, slices, None and Ellipsis."""
    keys = key if isinstance(key, tuple) else (key,)
    used = sum(k is not None and k is not Ellipsis for k in keys)
    dim, result = 0, self
    for item in keys:
        if item is Ellipsis:
            dim += self._array.ndim - used
        elif item is None:
            result, dim = unsqueeze.call(result, dim), dim + 1
        elif isinstance(item, slice):
            step = 1 if item.step is None else item.step
            if item != slice(None):
                result = slice_.call(result, dim, item.start, item.stop, step)
            dim += 1
        else:
            result = select.call(result, dim, int(item))
    return result if result is not self else alias(self)


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value``: the view is written in place."""
    target = getitem(self, key)
    target.copy_(value if isinstance(value, Tensor) else self.new_full((), value))


METHODS: dict[str, Any] = {"__getitem__": getitem, "__setitem__": setitem}
