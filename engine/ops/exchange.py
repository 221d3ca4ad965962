"""DLPack: tensors whose memory other libraries read and write, and theirs here (CPU only)."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from stridescope.engine.device import CPU
from stridescope.engine.dispatch.overlap import writable
from stridescope.engine.ops.to_python import from_numpy, share
from stridescope.engine.tensor import Tensor, alias

INVALID = (
    "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have "
    "already constructed a tensor from it once."
)


class DLDeviceType(enum.IntEnum):
    """Where memory lies, in DLPack's numbers."""

    kDLCPU = 1
    kDLCUDA = 2


class _Capsule:
    """A capsule as NumPy takes it: an object that hands it out."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **ignored: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return int(DLDeviceType.kDLCPU), 0


class _Writable:
    """The memory of an array that NumPy takes for read-only, as it does with every capsule without a version."""

    def __init__(self, array: np.ndarray) -> None:
        described = array.__array_interface__
        self.__array_interface__ = described | {"data": (described["data"][0], False)}
        self._kept = array


def _device_of(self: Tensor) -> tuple[DLDeviceType, int]:
    if self.device.type == "meta":
        raise ValueError(f"Unknown device type {self.device.type} for Dlpack")
    kind = DLDeviceType.kDLCPU if self.device.type == "cpu" else DLDeviceType.kDLCUDA
    return kind, self.device.index or 0


def _check(tensor: Tensor) -> None:
    """BufferError for what cannot be handed out; NotImplementedError for the memory of a GPU."""
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if tensor._conj:
        raise BufferError("Can't export tensors with the conjugate bit set")
    if tensor.device.type == "meta":
        raise BufferError("Cannot pack tensors on meta")
    if tensor.device is not CPU:
        raise NotImplementedError("torch.utils.dlpack of cuda tensors is not in Stridescope yet")


def _handed_out(
    self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """A capsule that holds the tensor's memory (or a copy of it)."""
    _check(self)
    if stream is not None:
        raise AssertionError("stream should be None on cpu.")
    array = writable(self)
    if not copy:
        share(self.storage_)
    return (array.copy() if copy else array).__dlpack__(max_version=max_version)


def _received(given: Any) -> np.ndarray:
    if hasattr(given, "__dlpack__"):
        return np.from_dlpack(given)
    return np.asarray(_Writable(np.from_dlpack(_Capsule(given))))


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's, or of a capsule; ``copy`` asks for memory of its own.

    Raises RuntimeError for what is no such object, and for a capsule that was used before.
    """
    if isinstance(ext_tensor, Tensor):
        _check(ext_tensor)
        result = alias(ext_tensor)
    else:
        try:
            result = from_numpy(_received(ext_tensor))
        except (AttributeError, ValueError, TypeError) as error:
            raise RuntimeError(INVALID) from error
    result = result.clone() if copy else result
    return result if device is None else result.to(device)


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule that holds the tensor's memory, for one use."""
    return _handed_out(alias(tensor))


METHODS: dict[str, Any] = {"__dlpack__": _handed_out, "__dlpack_device__": _device_of}
FUNCTIONS: dict[str, Any] = {"from_dlpack": from_dlpack, "to_dlpack": to_dlpack}
