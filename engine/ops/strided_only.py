"""Methods that ask a tensor for another layout than strided, and old methods that run a Python function on elements.

All tensors here are strided and not quantized: what PyTorch answers for such tensors is answered, the rest says that it
is not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from stridescope.engine.announce import record_values
from stridescope.engine.dispatch.overlap import writable
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import BOOL, COMPLEX, FLOAT, INTEGER, dtype, float32
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import warn

# What a method expects, in PyTorch's words.
_EXPECTED = {
    "coalesce": "sparse coordinate tensor", "is_coalesced": "sparse coordinate tensor",
    "indices": "sparse coordinate tensor", "values": "sparse tensor", "crow_indices": "sparse row compressed tensor",
    "col_indices": "sparse row compressed tensor", "ccol_indices": "sparse column compressed tensor",
    "row_indices": "sparse column compressed tensor",
}  # fmt: skip
_NOT_HERE = (
    "_indices", "_nnz", "_values", "int_repr", "q_per_channel_axis", "q_per_channel_scales",
    "q_per_channel_zero_points", "q_scale", "q_zero_point", "qscheme", "resize_as_sparse_", "smm", "sparse_mask",
    "sparse_resize_", "sparse_resize_and_clear_", "sspaddmm", "to_mkldnn", "to_padded_tensor", "to_sparse",
    "to_sparse_bsc", "to_sparse_bsr", "to_sparse_coo", "to_sparse_csc", "to_sparse_csr",
)  # fmt: skip


def _sparse_only(name: str, expected: str) -> Callable[[Tensor], NoReturn]:
    def method(self: Tensor) -> NoReturn:
        raise RuntimeError(f"{name} expected {expected} layout but got Strided")

    return method


def _refused(name: str) -> Callable[..., NoReturn]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"torch.Tensor.{name} is not in Stridescope yet: all tensors here are strided")

    return method


def _to_dense(self: Tensor, dtype: dtype | None = None, *, masked_grad: bool = True) -> Tensor:
    return self if dtype is None else self.to(dtype)


# ---- Python functions on elements --------------------------------------------------------------------------------


def _check_leafless(self: Tensor, name: str) -> None:
    if self._requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if not (self._plain or self._inference):
        raise TypeError(f"{name} is only implemented on CPU tensors")


def _elements(self: Tensor, other: Tensor, name: str, argument: str) -> Array:
    if other.dtype is not self.dtype:
        raise TypeError(f"{name}: expected {self.type()} for '{argument}' (got {other.type()})")
    return np.broadcast_to(resolved(other), self._array.shape)


# What a function gave becomes an element by category of dtype; ldexp takes what has __float__ and no text.
_AS_STORED: dict[int, Callable[[Any], Any]] = {
    BOOL: bool, INTEGER: int, FLOAT: lambda value: math.ldexp(value, 0), COMPLEX: complex,
}  # fmt: skip


def _run(self: Tensor, function: Callable[..., Any], *others: Array) -> Tensor:
    """Write what the function gives for each element in its place, one after another; the version stays."""
    target, stored = writable(self), _AS_STORED[self.dtype.category]
    for index in np.ndindex(target.shape):
        target[index] = stored(function(target[index].item(), *(other[index].item() for other in others)))
    if self._id:
        record_values(self.storage_, self.dtype)
    return self


def _apply(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    _check_leafless(self, "apply_")
    return _run(self, callable)


def _map(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    _check_leafless(self, "map_")
    return _run(self, callable, _elements(self, tensor, "map_", "other"))


def _map2(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    _check_leafless(self, "map2_")
    return _run(self, callable, _elements(self, x, "map2_", "x"), _elements(self, y, "map2_", "y"))


# ---- old names ---------------------------------------------------------------------------------------------------


def _resize(self: Tensor, *sizes: Any) -> Tensor:
    warn("non-inplace resize is deprecated")
    return _reshaped(self, tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)


def _resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    warn("non-inplace resize_as is deprecated")
    return _reshaped(self, tuple(tensor.shape))


def _reshaped(self: Tensor, sizes: tuple[int, ...]) -> Tensor:
    count = math.prod(sizes)
    if count != self._array.size:
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, sizes))} ({count} elements in total), but the given tensor has a "
            f"size of {'x'.join(map(str, self.shape))} ({self._array.size} elements). autograd's resize can only "
            "change the shape of a given tensor, while preserving the number of elements. "
        )
    return self.reshape(sizes)  # type: ignore[no-any-return]


def _volatile(self: Tensor) -> bool:
    warn("volatile was removed (Variable.volatile is always False)")
    return False


def _grad_dtype(self: Tensor) -> dtype:
    if self._node is not None:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.dtype


def _set_grad_dtype(self: Tensor, value: Any) -> None:
    if self._node is not None:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if value is not None and not isinstance(value, dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    if value is not self.dtype:
        raise NotImplementedError("a grad_dtype other than the tensor's own dtype is not in Stridescope yet")


METHODS: dict[str, Any] = {
    **{name: _sparse_only(name, expected) for name, expected in _EXPECTED.items()},
    **{name: _refused(name) for name in _NOT_HERE},
    "dense_dim": lambda self: self._array.ndim,
    "sparse_dim": lambda self: 0,
    "to_dense": _to_dense,
    "dequantize": lambda self: self.to(float32),
    "const_data_ptr": lambda self: self.data_ptr(),
    "grad_dtype": property(_grad_dtype, _set_grad_dtype),
    "apply_": _apply,
    "map_": _map,
    "map2_": _map2,
    "resize": _resize,
    "resize_as": _resize_as,
    "volatile": property(_volatile),
    "name": property(lambda self: None),
}
