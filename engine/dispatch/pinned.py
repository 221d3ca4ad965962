"""Pinned host memory behind tensors: what ``pin_memory()``, ``pin_memory=True`` and copies from a GPU give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.device import CPU
from stridescope.engine.devices.host_allocator import HostAllocator, HostBlock
from stridescope.engine.devices.registry import current_device, device_count
from stridescope.engine.dispatch.schema import Schema
from stridescope.engine.storage import Array, Storage
from stridescope.engine.tensor import Tensor


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


def pin(made: Tensor) -> Tensor:
    """Let a tensor that was just made, and that nothing else shares, lie in pinned memory."""
    if made.device is not CPU:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    if not device_count():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    made._storage = PinnedStorage(made._array, current_device().host_allocator)
    return made


def pinning(schema: Schema, run: Callable[..., Any]) -> Callable[..., Any]:
    """A factory's kernel that minds its argument ``pin_memory``; any other kernel as it is."""
    names = [argument.name for argument in schema.arguments]
    if "pin_memory" not in names:
        return run
    at = names.index("pin_memory")

    def pinned(*args: Any) -> Any:
        made = run(*args)
        return pin(made) if len(args) > at and args[at] else made

    return pinned
