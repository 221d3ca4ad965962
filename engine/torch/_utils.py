"""How checkpoints rebuild tensors: the functions that PyTorch's files name."""

from __future__ import annotations

from typing import Any

from stridescope.engine.device import META
from stridescope.engine.layout import Layout
from stridescope.engine.ops.storage_objects import storage_of
from stridescope.engine.storage import Storage
from stridescope.engine.tensor import Tensor, over
from stridescope.engine.torch.nn.parameter import Parameter


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    memory, kind = storage_of(storage)
    assert kind is not None
    return over(memory, Layout(tuple(size), tuple(stride), storage_offset), kind)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: dict[str, bool] | None = None,
) -> Tensor:
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    tensor._requires_grad = requires_grad
    if metadata:
        tensor._conj, tensor._neg = metadata.get("conj", False), metadata.get("neg", False)
    return tensor


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: dict[str, bool] | None = None,
) -> Tensor:
    """For dtypes without a storage class of their own: the storage is one of bytes."""
    tensor = over(storage_of(storage)[0], Layout(tuple(size), tuple(stride), storage_offset), dtype)
    tensor._requires_grad = requires_grad
    return tensor


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    import numpy as np

    layout = Layout(tuple(size), tuple(stride), 0)
    tensor = over(Storage(np.zeros(layout.extent() * dtype.itemsize, np.uint8), META), layout, dtype)
    tensor._requires_grad = requires_grad
    return tensor


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    return _with_state(Parameter(data, requires_grad), state)


def _rebuild_from_type_v2(func: Any, new_type: type[Any], args: tuple[Any, ...], state: Any) -> Any:
    """A tensor of a subclass, or one with attributes of its own."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    return _with_state(made, state)


def _with_state(made: Any, state: Any) -> Any:
    if isinstance(state, tuple):
        state = state[0]
    for name, value in (state or {}).items():
        setattr(made, name, value)
    return made


REBUILD = (
    _rebuild_tensor, _rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_meta_tensor_no_storage, _rebuild_parameter,
    _rebuild_parameter_with_state,
)  # fmt: skip
