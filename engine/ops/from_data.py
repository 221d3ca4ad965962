"""Python data as tensors: ``torch.tensor``, ``as_tensor``, ``asarray``, ``frombuffer``, ``Tensor.new_tensor``."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.autograd.leaf import require_grad
from stridescope.engine.autograd.lockstep import batch_of
from stridescope.engine.device import device
from stridescope.engine.dispatch.invalid_arguments import type_name
from stridescope.engine.dispatch.pinned import pin
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FROM_NUMPY, INTEGER, default_float, dtype, of_category, scalar_name
from stridescope.engine.ops.creation import from_values
from stridescope.engine.ops.number_range import check_number
from stridescope.engine.ops.to_python import SUPPORTED, from_numpy
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import internal, warn, warn_once

LONG_RANGE = range(-(1 << 63), 1 << 63)


def array_of(data: Any, kind: dtype | None) -> tuple[Array, dtype]:
    """A fresh row-major array of ``data`` and its dtype.

    Python floats become the default float, ints int64. Raises ValueError for ragged lists and TypeError for what is
    no number, with PyTorch's texts.
    """
    if isinstance(data, Tensor):
        chosen = kind or data.dtype
        return np.array(resolved(data).astype(chosen.np), order="C"), chosen
    if isinstance(data, np.ndarray | np.generic):
        return _of_numpy(np.asarray(data), kind)
    shape = _shape(data)
    flat: list[Any] = []
    _flatten(data, shape, 0, flat)
    chosen = kind or _inferred(flat)
    return _filled(flat, chosen).reshape(shape), chosen


def _of_numpy(data: Array, kind: dtype | None) -> tuple[Array, dtype]:
    if data.dtype not in FROM_NUMPY:
        name = f"{data.dtype.type.__module__}.{data.dtype.type.__name__}"
        raise TypeError(f"can't convert np.ndarray of type {name}. The only supported types are: {SUPPORTED}.")
    chosen = kind or FROM_NUMPY[data.dtype]
    with np.errstate(all="ignore"):
        return np.array(data.astype(chosen.np), order="C"), chosen


def _filled(flat: list[Any], kind: dtype) -> Array:
    if not flat:
        return np.empty(0, kind.np)
    if kind.category == INTEGER:
        flat = [_whole(value, kind) for value in flat]
    elif not kind.is_complex and kind.category and any(isinstance(v, complex) for v in flat):
        raise TypeError("must be real number, not complex")
    with np.errstate(all="ignore"):
        return np.array(flat, dtype=object).astype(_holder(kind)).astype(kind.np)


def _holder(kind: dtype) -> Any:
    """The wide NumPy dtype in which Python numbers are read before they are rounded."""
    return (np.bool_, np.int64 if kind.name != "uint64" else np.uint64, np.float64, np.complex128)[kind.category]


def _whole(value: Any, kind: dtype) -> int:
    if isinstance(value, complex):
        raise TypeError("'complex' object cannot be interpreted as an integer")
    if isinstance(value, int) and value not in LONG_RANGE and kind.name != "uint64":
        raise ValueError("Overflow when unpacking long long")
    try:
        check_number(value, kind)
    except RuntimeError:
        raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow") from None
    return int(value)


def _is_sequence(data: Any) -> bool:
    return hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (dict, str, bytes))


def _shape(data: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while _is_sequence(data) and not (isinstance(data, Tensor) and not data._array.ndim):
        if isinstance(data, np.ndarray):
            if shape:
                _warn_of_arrays()
            return (*shape, *data.shape)
        shape.append(len(data))
        if not shape[-1]:
            break
        data = data[0]
    if isinstance(data, (str, bytes)):
        kind = type(data).__name__
        raise ValueError(f"too many dimensions '{kind}'") if shape else TypeError(f"new(): invalid data type '{kind}'")
    return tuple(shape)


def _warn_of_arrays() -> None:
    warn_once(
        internal(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to "
            "a single numpy.ndarray with numpy.array() before converting to a tensor.",
            "torch/csrc/utils/tensor_new.cpp:252",
        )
    )


def _flatten(data: Any, shape: tuple[int, ...], dim: int, flat: list[Any]) -> None:
    if dim == len(shape):
        flat.append(_number(data))
        return
    if isinstance(data, Tensor):
        raise ValueError("only one element tensors can be converted to Python scalars")
    if not _is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
    if isinstance(data, np.ndarray):
        flat.extend(data.ravel().tolist())
        return
    for item in data:
        _flatten(item, shape, dim + 1, flat)


def _number(value: Any) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, (Tensor, np.generic)):
        return value.item()
    if _is_sequence(value):
        raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")
    raise RuntimeError(f"Could not infer dtype of {type(value).__name__}")


_CATEGORY = {bool: 0, int: 1, float: 2, complex: 3}


def _inferred(flat: list[Any]) -> dtype:
    if not flat:
        return default_float()
    return of_category(max(_CATEGORY.get(type(v), 2) for v in flat))


def _checked_dtype(function: str, kind: Any) -> dtype | None:
    if kind is None or isinstance(kind, dtype):
        return kind
    if kind in (float, int, bool):
        return FROM_NUMPY[np.dtype(kind)]
    raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type_name(kind)}")


def _device(name: Any) -> device | None:
    return None if name is None else device(name)


def _home(data: Any) -> device | None:
    return data.device if isinstance(data, Tensor) else None


_MISSING = object()


def refuse_batched(tensor: Tensor) -> None:
    """Refuse to copy a tensor that stands for many examples of a vmap into one."""
    if batch_of(tensor) is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
            "detach_() cannot be called on these gradients. To fix this error, please refer to the Optimizer.zero_grad "
            "function in torch/optim/optimizer.py as the solution."
        )


def tensor(
    data: Any = _MISSING,
    *extra: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """``torch.tensor``: a new leaf holding a copy of numbers, nested lists, NumPy arrays or a tensor."""
    if data is _MISSING:
        raise TypeError('tensor() missing 1 required positional arguments: "data"')
    if extra:
        raise TypeError(f"tensor() takes 1 positional argument but {1 + len(extra)} were given")
    if isinstance(data, Tensor):
        warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
        )
        refuse_batched(data)
    array, kind = array_of(data, _checked_dtype("tensor", dtype))
    made = from_values(array, kind, _device(device) or _home(data), requires_grad)
    return pin(made) if pin_memory else made


def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``Tensor.new_tensor``: ``torch.tensor`` in the dtype and on the device of this tensor."""
    if isinstance(data, Tensor):
        warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor(sourceTensor)."
        )
    array, kind = array_of(data, _checked_dtype("new_tensor", dtype) or self.dtype)
    return from_values(array, kind, _device(device) or self.device, requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``torch.as_tensor``: the data as a tensor, without a copy where that is possible."""
    kind, on = _checked_dtype("as_tensor", dtype), _device(device)
    if isinstance(data, np.ndarray):
        data = from_numpy(data)
    if isinstance(data, Tensor):
        return data.to(on or data.device, kind or data.dtype)  # type: ignore[no-any-return]
    array, chosen = array_of(data, kind)
    return from_values(array, chosen, on, False)


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """``torch.asarray``: like ``as_tensor``, with a say about the copy and the gradient; takes buffers too."""
    kind, on = _checked_dtype("asarray", dtype), _device(device)
    source: Any = obj
    if isinstance(obj, np.ndarray):
        source = from_numpy(obj)
        if copy and not obj.ndim:
            _check_alias(source, kind or source.dtype)
    elif isinstance(obj, np.generic) and copy is not None:
        source = _scalar_source(obj, kind, copy)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        source = frombuffer(obj, dtype=kind or default_float(), requires_grad=bool(requires_grad))
    if not isinstance(source, Tensor):
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        array, chosen = array_of(source, kind)
        return from_values(array, chosen, on, bool(requires_grad))
    return _reused(source, kind or source.dtype, on or source.device, copy, requires_grad)


def _scalar_source(obj: np.generic, kind: dtype | None, copy: bool) -> Tensor:
    """A NumPy scalar as a tensor: PyTorch takes the copy when it reads one, and converts nothing afterwards."""
    if not copy:
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
    source = from_numpy(np.asarray(obj).copy())
    _check_alias(source, kind or source.dtype)
    return source


def _check_alias(source: Tensor, kind: dtype) -> None:
    if kind is not source.dtype:
        raise ValueError(
            f"can't alias tensor with dtype '{scalar_name(source.dtype)}' into dtype '{scalar_name(kind)}'."
        )


def _reused(source: Tensor, kind: dtype, on: device, copy: bool | None, requires_grad: bool | None) -> Tensor:
    if copy is False:
        _check_alias(source, kind)
    if copy is False and on is not source.device:
        raise ValueError(f"can't alias tensor from device '{source.device}' to '{on}'.")
    alike = kind is source.dtype and on is source.device
    result: Any = source.to(on, kind) if not alike else source.clone() if copy else source
    if requires_grad is None or requires_grad == result._requires_grad:
        return result  # type: ignore[no-any-return]
    if requires_grad:
        require_grad(result)
        return result  # type: ignore[no-any-return]
    return result.requires_grad_(False) if result.is_leaf else result.detach()  # type: ignore[no-any-return]


def frombuffer(buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """``torch.frombuffer``: a 1-d tensor over a buffer's own memory."""
    view = memoryview(buffer)
    size, item = view.nbytes, dtype.itemsize
    _check_buffer(size, item, count, offset)
    if view.readonly:
        warn_once(
            internal(
                "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you "
                "can write to the underlying (supposedly non-writable) buffer using the tensor. You may want to copy "
                "the buffer to protect its data or make it writable before converting it to a tensor. This type of "
                "warning will be suppressed for the rest of this program.",
                "torch/csrc/utils/tensor_new.cpp:1556",
            )
        )
    values = np.frombuffer(view.cast("B"), np.uint8)[offset:]
    length = count if count > 0 else values.size // item
    array = values[: length * item].view(dtype.np)
    if view.readonly:
        array = array.copy()
    result = from_numpy(array)
    if requires_grad:
        require_grad(result)
    return result


def _check_buffer(size: int, item: int, count: int, offset: int) -> None:
    if not size or not count:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1"
        )
    if count > 0 and count * item > size - offset:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({size} bytes)"
        )
    if count < 0 and (size - offset) % item:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({item})"
        )


METHODS: dict[str, Any] = {"new_tensor": new_tensor}
