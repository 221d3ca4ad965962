"""Tensor methods about a GPU's view of memory: which streams use it, and whether the host keeps it pinned."""

from __future__ import annotations

from typing import Any

from stridescope.engine.device import CPU
from stridescope.engine.devices.host_allocator import HostAllocator, HostBlock
from stridescope.engine.devices.registry import current_device, device_count
from stridescope.engine.dtype import scalar_name
from stridescope.engine.storage import Array, Storage
from stridescope.engine.tensor import Tensor, fresh


class PinnedStorage(Storage):
    """Host memory that a GPU copies from and to without the host's help; from the allocator of pinned memory."""

    __slots__ = ("allocator",)

    def __init__(self, owner: Array, allocator: HostAllocator) -> None:
        self.allocator = allocator
        super().__init__(owner, CPU, allocator.allocate(owner.nbytes))

    def __del__(self) -> None:
        block, self.block = self.block, None
        if block is not None:
            self.allocator.free(block)


def pinned_block(tensor: Tensor) -> HostBlock | None:
    """The pinned memory that a tensor lies in, None for pageable memory."""
    storage = tensor._storage
    return storage.block if isinstance(storage, PinnedStorage) else None


def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    if self.device is not CPU:
        kind = f"torch.{'cuda.' if self.device.type == 'cuda' else ''}{scalar_name(self.dtype)}Tensor"
        raise RuntimeError(f"cannot pin '{kind}' only dense CPU tensors can be pinned")
    if pinned_block(self) is not None:
        return self
    if not device_count():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    copy = fresh(self._array.copy(order="K"), self.dtype)
    copy._storage = PinnedStorage(copy._array, current_device().host_allocator)
    return copy


def _record_stream(self: Tensor, stream: Any) -> None:
    if self.device.type != "cuda":
        raise NotImplementedError(
            "Could not run 'aten::record_stream' with arguments from the 'CPU' backend: only memory of a GPU is used "
            "by streams."
        )
    storage = self._storage
    if storage is not None and storage.block is not None:
        storage.allocator.record_stream(storage.block, stream.cuda_stream)  # type: ignore[attr-defined]


METHODS: dict[str, Any] = {
    "is_pinned": lambda self, device=None: pinned_block(self) is not None,
    "pin_memory": _pin_memory,
    "record_stream": _record_stream,
}
