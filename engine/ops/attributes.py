"""What a tensor answers about itself: sizes, strides, dtype, device, autograd state; and ``backward``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.api import backward, grad_setter, register_hook, requires_grad_, retain_grad
from stridescope.engine.layout import is_contiguous, wrap_dim
from stridescope.engine.ops.copying import detach, to
from stridescope.engine.tensor import Size, Tensor, alias


def _size(self: Tensor, dim: int | None = None) -> Any:
    return Size(self._array.shape) if dim is None else self._array.shape[wrap_dim(dim, self._array.ndim)]


def _stride(self: Tensor, dim: int | None = None) -> Any:
    return self.strides if dim is None else self.strides[wrap_dim(dim, self._array.ndim)]


def _item(self: Tensor) -> Any:
    if self._array.size != 1:
        raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
    return self._array.item()


def _len(self: Tensor) -> int:
    if not self._array.ndim:
        raise TypeError("len() of a 0-d tensor")
    return int(self._array.shape[0])


def _bool(self: Tensor) -> bool:
    if self._array.size != 1:
        raise RuntimeError(
            "Boolean value of Tensor with no values is ambiguous"
            if not self._array.size
            else "Boolean value of Tensor with more than one value is ambiguous"
        )
    return bool(self._array.item())


def _data_ptr(self: Tensor) -> int:
    return 0 if not self._array.size else self.storage_.address + self.offset * self._array.itemsize


METHODS: dict[str, Any] = {
    "size": _size,
    "stride": _stride,
    "dim": lambda self: self._array.ndim,
    "ndim": property(lambda self: self._array.ndim),
    "numel": lambda self: self._array.size,
    "storage_offset": lambda self: self.offset,
    "element_size": lambda self: self._array.itemsize,
    "is_contiguous": lambda self, memory_format=None: is_contiguous(self._array.shape, self.strides),
    "data_ptr": _data_ptr,
    "item": _item,
    "tolist": lambda self: self._array.tolist(),
    "__len__": _len,
    "__bool__": _bool,
    "__hash__": lambda self: id(self),
    "__float__": lambda self: float(_item(self)),
    "__int__": lambda self: int(_item(self)),
    "__index__": lambda self: int(_item(self)),
    "to": to,
    "grad": property(lambda self: self._grad, grad_setter),
    "grad_fn": property(lambda self: self._node),
    "_version": property(lambda self: self.version_counter.value),
    "_base": property(lambda self: self._base_tensor),
    "_is_view": lambda self: self._base_tensor is not None,
    "data": property(lambda self: alias(self)),
    "T": property(lambda self: self.permute(tuple(range(self._array.ndim - 1, -1, -1)))),
    "backward": backward,
    "requires_grad_": requires_grad_,
    "register_hook": register_hook,
    "retain_grad": retain_grad,
    "is_cuda": property(lambda self: self.device.type == "cuda"),
    "conj": lambda self: self,
}
__all__ = ["METHODS", "Callable", "detach"]
