"""``torch.cuda.MemPool``: memory kept apart from the default pools."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any

from stridescope.engine.devices.registry import cuda_devices
from stridescope.engine.devices.snapshot import memory_snapshot
from stridescope.engine.torch.cuda.device_index import device_index, gpu

_numbers = itertools.count(1)


def graph_pool_handle() -> tuple[int, int]:
    """An id that several pools may share."""
    return 0, next(_numbers)


class MemPool:
    """A private pool of the caching allocator.

    With ``use_on_oom`` it lends its cached blocks when the device is full, with ``no_split`` every request gets a
    whole segment, and ``allocator`` provides the segments in place of the device.
    """

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        self.allocator = allocator
        self._id = graph_pool_handle()
        self._device = gpu()
        self._device.allocator.create_pool(self._id, no_split, use_on_oom, allocator)

    @property
    def id(self) -> tuple[int, int]:
        """The two numbers that name the pool."""
        return self._id

    def use_count(self) -> int:
        """How many users keep the pool: the object itself, and every open ``use_mem_pool``."""
        return self._device.allocator.pools.private[self._id].use_count

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """The pool's segments."""
        return [segment for found in cuda_devices() for segment in memory_snapshot(found.allocator, self._id)]

    def __del__(self) -> None:
        if "_device" in self.__dict__:
            self._device.allocator.release_pool(self._id)
            self._device.allocator.empty_cache(self._id)


MemPool.__module__ = "torch.cuda.memory"


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """While it is open, this thread's requests go to the pool."""
    allocator, thread = gpu(device_index(device)).allocator, threading.get_ident()
    allocator.begin_allocate_to_pool(pool.id, lambda stream: threading.get_ident() == thread)
    try:
        yield
    finally:
        allocator.end_allocate_to_pool(pool.id)
        allocator.release_pool(pool.id)
