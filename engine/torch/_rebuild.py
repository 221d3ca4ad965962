"""The functions that a saved file names to make tensors again (``torch._utils`` in PyTorch)."""

from __future__ import annotations

from typing import Any

from stridescope.engine.device import CPU
from stridescope.engine.layout import Layout
from stridescope.engine.tensor import Tensor, over


def rebuild_tensor(
    storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool, backward_hooks: Any, *_rest: Any
) -> Tensor:
    """A tensor on a storage that was read, moved to its device."""
    memory, kind, place = storage
    tensor: Any = over(memory, Layout(tuple(size), tuple(stride), storage_offset), kind)
    if place is not CPU:
        tensor = tensor.to(place)
    return tensor.requires_grad_() if requires_grad else tensor  # type: ignore[no-any-return]


def rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    """A module's parameter again."""
    from stridescope.engine.torch.nn.parameter import Parameter

    return Parameter(data, requires_grad)
