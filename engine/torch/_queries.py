"""Functions of the ``torch`` module that answer questions, and the defaults that they read."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from stridescope.engine.device import CPU, DefaultDevice, device
from stridescope.engine.device import device as device_of
from stridescope.engine.dispatch.converters import is_number
from stridescope.engine.dispatch.invalid_arguments import type_name
from stridescope.engine.dispatch.promote import result_type as result_type_of
from stridescope.engine.dtype import BY_NAME, FLOAT, can_cast, defaults, dtype, promote_types
from stridescope.engine.ops.creation import place_of
from stridescope.engine.ops.storage_objects import TypedStorage, UntypedStorage
from stridescope.engine.tensor import Size, Tensor
from stridescope.engine.warn import internal, warn_once


def is_tensor(obj: Any, /) -> bool:
    """Whether this is a tensor."""
    return isinstance(obj, Tensor)


def _assert(condition: Any, message: str) -> None:
    """``assert condition, message`` as a call, that a graph can hold."""
    assert condition, message


def is_storage(obj: Any, /) -> bool:
    """Whether this is a storage object."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


def typename(obj: Any, /) -> str:
    """The name of an object's type; of a tensor, its old type name such as ``torch.FloatTensor``."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "") or ""
    return kind.__qualname__ if module in ("", "builtins", "__builtin__") else f"{module}.{kind.__qualname__}"


def _of_tensor(name: str) -> Callable[..., Any]:
    """The function form of a question to one tensor."""

    def ask(input: Tensor) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type_name(input)}")
        return getattr(input, name)()

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"The function form of ``Tensor.{name}``."
    return ask


QUESTIONS: dict[str, Callable[..., Any]] = {
    name: _of_tensor(name)
    for name in (
        "numel", "is_floating_point", "is_complex", "is_signed", "is_conj", "is_neg", "is_inference", "is_nonzero",
        "get_device",
    )
}  # fmt: skip


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same sizes."""
    return input.shape == other.shape


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype in which these two would be computed."""
    for position, (name, value) in enumerate((("tensor1", tensor1), ("tensor2", tensor2)), 1):
        if not (isinstance(value, Tensor) or is_number(value)):
            raise TypeError(
                f"result_type(): argument '{name}' (position {position}) must be Tensor, not {type_name(value)}"
            )
    return result_type_of(tensor1, tensor2)


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that these shapes broadcast to; raises RuntimeError where they do not."""
    given = [(s,) if isinstance(s, int) else s for s in shapes]
    common = [1] * max(map(len, given), default=0)
    for position, shape in enumerate(given):
        for dim in range(-1, -1 - len(shape), -1):
            if common[dim] == 1:
                if shape[dim] < 0:
                    raise ValueError("Attempting to broadcast a dimension with negative length!")
                common[dim] = shape[dim]
            elif shape[dim] not in (1, common[dim]):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[dim]} at {dim}! Mismatching argument at "
                    f"index {position} had {shape}; but expected shape should be broadcastable to {common}"
                )
    return Size(common)


def get_default_dtype() -> dtype:
    """The dtype of Python floats."""
    return defaults.float


def set_default_dtype(d: Any, /) -> None:
    """Let Python floats become ``d``; raises TypeError for what is no floating point dtype."""
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if d.category != FLOAT:
        raise TypeError("only floating-point types are supported as the default type")
    defaults.float = d


_TENSOR_TYPES = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16",
                 "BFloat16Tensor": "bfloat16"}  # fmt: skip


def set_default_tensor_type(t: Any, /) -> None:
    """The old way to set the default dtype: ``torch.DoubleTensor`` or its name."""
    name = t if isinstance(t, str) else t.__name__
    kind = _TENSOR_TYPES.get(name.rpartition(".")[2])
    if kind is None:
        raise TypeError("only floating-point types are supported as the default type")
    warn_once(
        internal(
            "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
            "torch.set_default_device() as alternatives.",
            "torch/csrc/tensor/python_tensor.cpp:434",
        )
    )
    set_default_dtype(BY_NAME[kind])


def get_default_device() -> device:
    """Where factories put new tensors."""
    return place_of(None)


def set_default_device(device: Any) -> None:
    """Let factories put new tensors on this device; None is the CPU."""
    DefaultDevice.device = CPU if device is None else _device(device)


def _device(name: Any) -> device:
    return device(name)


def get_device_module(device: Any = None) -> Any:
    """The module of a device's kind (``torch.cpu``, ``torch.cuda``); by default the accelerator's, else the CPU's."""
    from stridescope.engine.torch import cuda

    on = device_of(device if device is not None else "cuda" if cuda.is_available() else "cpu")
    return importlib.import_module(f"stridescope.engine.torch.{on.type}")


FUNCTIONS: dict[str, Any] = {
    **QUESTIONS,
    **{
        function.__name__: function
        for function in (
            _assert, is_tensor, is_storage, typename, is_same_size, result_type, broadcast_shapes, get_default_dtype,
            set_default_dtype, set_default_tensor_type, get_default_device, set_default_device, promote_types, can_cast,
            get_device_module,
        )
    },
}  # fmt: skip
