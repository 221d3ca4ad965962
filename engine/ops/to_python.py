"""From tensors to Python and NumPy and back: item, tolist, bool, float, numpy, from_numpy."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.autograd.lockstep import batch_of
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.device import META
from stridescope.engine.dispatch.launches import read_back
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FROM_NUMPY, scalar_name
from stridescope.engine.ops.copying import NO_DATA
from stridescope.engine.storage import Array, Storage
from stridescope.engine.tensor import Tensor, blank_with, fresh
from stridescope.engine.warn import internal, warn, warn_once

# Called with every tensor whose value becomes a Python number, and whether it decides a condition. Mostly empty.
before_reading: list[Callable[[Tensor, bool], None]] = []


def _told(tensor: Tensor, truth: bool) -> None:
    for told in before_reading:
        told(tensor, truth)


def is_watched(tensor: Tensor) -> bool:
    """Whether no number may be made of the tensor: it stands for many examples of a vmap."""
    try:
        _told(tensor, False)
    except RuntimeError:
        return True
    return False


_TO_SCALAR = internal(
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first.",
    "torch/csrc/autograd/generated/python_variable_methods.cpp:822",
)


def _read(self: Tensor) -> Any:
    """The tensor's only value as a Python number; raises RuntimeError where it has none."""
    if self._device is META:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    read_back(self)
    if grad_mode.shown is not None:
        return grad_mode.shown.call("_local_scalar_dense", (self,), {}, lambda: resolved(self).item())
    return resolved(self).item()


def item(self: Tensor) -> Any:
    """The only element as a Python number; raises RuntimeError when there are more or fewer."""
    if self._array.size != 1:
        raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
    if before_reading:
        _told(self, False)
    return _read(self)


def _refuse_memory(tensor: Tensor) -> None:
    """Refuse to show the memory of a tensor that stands for many."""
    if before_reading and batch_of(tensor) is not None:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers."""
    _refuse_memory(self)
    if self._device is META:
        raise NotImplementedError(NO_DATA)
    read_back(self)
    return resolved(self).tolist()


def length(self: Tensor) -> int:
    """``len(tensor)``: the size of the first dim."""
    if not self._array.ndim:
        raise TypeError("len() of a 0-d tensor")
    return int(self._array.shape[0])


def truth(self: Tensor) -> bool:
    """``bool(tensor)``, for tensors of one element only."""
    if self._array.size != 1:
        few = "no values" if not self._array.size else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {few} is ambiguous")
    if before_reading:
        _told(self, True)
    return bool(_read(self))


def _single(self: Tensor, *, warned: bool = True) -> Any:
    if before_reading:
        _told(self, False)
    if warned and self._requires_grad and grad_mode.enabled:
        warn_once(_TO_SCALAR)
    if self._array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return _read(self)


def _as_float(self: Tensor) -> float:
    return float(_real(self, "double"))


def _as_int(self: Tensor) -> int:
    return int(_real(self, "int64_t", warned=False))  # PyTorch warns of float() and complex() only


def _real(self: Tensor, kind: str, *, warned: bool = True) -> Any:
    value = _single(self, warned=warned)
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        return value.real
    return value


def _as_complex(self: Tensor) -> complex:
    return complex(_single(self))


def index(self: Tensor) -> int:
    """What Python asks for when a tensor is used as an index."""
    if self._array.size != 1 or self.dtype.category > 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    if before_reading:
        _told(self, False)
    return int(_read(self))


def numpy(self: Tensor, *, force: bool = False) -> Array:
    """An array over the tensor's own memory; raises when it needs a copy, unless ``force`` allows one."""
    if force:
        return numpy(self.detach().cpu().resolve_conj().resolve_neg())
    _refuse_memory(self)
    _check_numpy(self)
    if self.dtype.name == "bfloat16":
        raise TypeError(f"Got unsupported ScalarType {scalar_name(self.dtype)}")
    array = self._array.view()
    if self.device.type == "cpu":
        self.storage_.resizable = False
        share(self.storage_)
    return array


def _check_numpy(self: Tensor) -> None:
    if self.device.type != "cpu":
        raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
                        "to host memory first.")  # fmt: skip
    if self._requires_grad and grad_mode.enabled:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    for bit, name in ((self._conj, "conj"), (self._neg, "neg")):
        if bit:
            kind = "conjugate" if name == "conj" else "negative"
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {kind} bit set. Use tensor.resolve_{name}().numpy() instead."
            )


def to_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Array:
    """What ``numpy.asarray(tensor)`` asks for."""
    array = numpy(self)
    return array if dtype is None else array.astype(dtype, copy=False)


def array_wrap(self: Tensor, array: Array, context: Any = None, return_scalar: bool = False) -> Tensor:
    """Make a tensor of what a NumPy function made of one, with the warning that NumPy gives for PyTorch's tensors."""
    warn(
        "__array_wrap__ must accept context and return_scalar arguments (positionally) in the future. "
        "(Deprecated NumPy 2.0)",
        DeprecationWarning,
    )
    return from_numpy(np.asarray(array.astype(np.uint8) if array.dtype == np.bool_ else array))


SUPPORTED = (
    "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and "
    "bool"
)


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor over an array's own memory."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    _check_array(ndarray)
    tensor = fresh(ndarray.view(), FROM_NUMPY[ndarray.dtype])
    if not ndarray.size:  # NumPy's strides of these are zeros, and stay
        tensor._array = blank_with(ndarray.shape, ndarray.strides, ndarray.dtype)
    tensor._storage = Storage(_extent(ndarray))
    _place_beside(tensor._storage)
    tensor._storage.resizable = False
    share(tensor._storage)
    return tensor


# Storages whose memory NumPy knows, by its real address: arrays that come back from NumPy get the address that the
# storage had, so that data_ptr tells who shares.
_shared: weakref.WeakValueDictionary[int, Storage] = weakref.WeakValueDictionary()


def share(storage: Storage) -> None:
    """Remember that others hold the storage's memory, so that it keeps its address when it comes back."""
    if storage.nbytes:
        _shared.setdefault(_pointer(storage), storage)


def _place_beside(storage: Storage) -> None:
    start = _pointer(storage)
    for begin, known in list(_shared.items()):
        if storage.nbytes and begin <= start < begin + known.nbytes:
            storage._address = known.address + start - begin
            return


def _pointer(storage: Storage) -> int:
    address: int = storage.raw.__array_interface__["data"][0]
    return address


def _check_array(array: Array) -> None:
    if not array.flags.writeable:
        warn_once(
            internal(
                "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
                "writing to this tensor will result in undefined behavior. You may want to copy the array to protect "
                "its data or make it writable before converting it to a tensor. This type of warning will be "
                "suppressed for the rest of this program.",
                "torch/csrc/utils/tensor_numpy.cpp:213",
            )
        )
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    if array.dtype not in FROM_NUMPY:
        kind = f"{array.dtype.type.__module__}.{array.dtype.type.__name__}"
        raise TypeError(f"can't convert np.ndarray of type {kind}. The only supported types are: {SUPPORTED}.")


class _Memory:
    """A run of bytes at an array's address; keeps the array alive."""

    def __init__(self, array: Array, nbytes: int) -> None:
        self.array = array
        self.__array_interface__ = {
            "data": (array.__array_interface__["data"][0], False),
            "typestr": "|u1",
            "shape": (nbytes,),
            "version": 3,
        }


def _extent(array: Array) -> Array:
    """All bytes that the array can reach, from its first element on."""
    if not array.size:
        return np.empty(0, np.uint8)
    last = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    return np.asarray(_Memory(array, last + array.itemsize))


METHODS: dict[str, Any] = {
    "item": item,
    "tolist": tolist,
    "numpy": numpy,
    "__len__": length,
    "__bool__": truth,
    "__float__": _as_float,
    "__int__": _as_int,
    "__complex__": _as_complex,
    "__index__": index,
    "__array__": to_array,
    "__array_wrap__": array_wrap,
    "__array_priority__": 1000,
}
