"""Tensors on their way between ranks: as bytes, and back into the tensors that receive them."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.tensor import Tensor, fresh
from stridescope.engine.torch.distributed.mesh import Message


def array_of(tensor: Tensor) -> Any:
    """The tensor's values on the host, row-major; not to be written."""
    if tensor.device.type != "cpu":
        tensor = tensor.detach().cpu()
    return np.ascontiguousarray(tensor._array)


def message(what: str, array: Any) -> Message:
    """What travels: the name of the exchange with the dtype, and the values."""
    return Message(f"{what} of {array.size} {array.dtype.name} values", array.tobytes())


def values(what: str, sent: Message, rank: int, like: Tensor) -> Any:
    """The array for a tensor; raises RuntimeError when the other rank did something else, or sent something else."""
    array_like = like._array
    expected = f"{what} of {array_like.size} {array_like.dtype.name} values"
    if sent.note != expected:
        raise RuntimeError(
            f"the ranks do not do the same: rank {rank} called {sent.note}, while this rank called {expected}"
        )
    return np.frombuffer(sent.payload, array_like.dtype).reshape(array_like.shape)


def write(tensor: Tensor, array: Any) -> None:
    """Put values into a tensor, past autograd: its version and its history stay, as with PyTorch's collectives."""
    before, grad_mode.enabled = grad_mode.enabled, False
    try:
        whole: Any = tensor.data
        whole.copy_(fresh(np.array(array.reshape(tensor._array.shape)), tensor.dtype))
    finally:
        grad_mode.enabled = before
