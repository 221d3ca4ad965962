"""Storages: flat runs of bytes on a device, and the version counters that watch over writes.

A :class:`Storage` keeps the NumPy array that owns its memory. On ``cuda`` it also holds a block of that device's
caching allocator for as long as it lives; on the simulated GPU the block is an address and the bytes lie in host
memory.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np

from stridescope.engine.device import CPU, device
from stridescope.engine.devices.registry import device_at
from stridescope.engine.devices.streams import current_stream
from stridescope.engine.events import StorageFreed, StorageMade, journal

Array = np.ndarray[Any, Any]

Device = device
_ids = itertools.count(1)
next_storage_id = _ids.__next__
_MADE = StorageMade.code
ALIGNMENT = 64  # c10's gAlignment for CPU memory


# The next symbolic CPU address: the same program sees the same ones in every run. A list, for it is counted up by
# every recorded op and by storages whose address is asked for.
next_address = [0x7F00_0000_0000]


class Version:
    """Counts in-place writes. Views and ``detach()`` share one counter with their base, ``.data`` does not."""

    __slots__ = ("id", "value")

    def __init__(self, id: int = 0) -> None:
        self.value = 0
        self.id = id


class Storage:
    """The memory behind tensors.

    Attributes:
        owner: a dense array over all of the memory (any dtype and order of dims).
        device: where it lives.
    """

    # What most storages never need has a default here, as with tensors: views and saved results make many of them.
    __slots__ = ("__dict__", "__weakref__", "_address", "_id", "_pointer", "owner", "told")

    owner: Array
    _id: int
    told: bool  # whether the recording knows what it holds
    device: Device = CPU
    block: Any = None
    resizable = True
    _raw: Array | None = None
    _address: int
    _pointer: int | None

    def __init__(self, owner: Array, on: Device = CPU, block: Any = None) -> None:
        self.owner, self._id, self.told, self._address, self._pointer = owner, 0, False, 0, None
        if on is not CPU:
            self.device = on
        if block is not None:
            self.block, self._address = block, block.address

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.owner.nbytes

    @property
    def raw(self) -> Array:
        """The memory as a one-dimensional array of bytes."""
        if self._raw is None:
            self._raw = flat_bytes(self.owner)
        return self._raw

    @property
    def pointer(self) -> int:
        """Where NumPy has the first byte; offsets of views are measured from here."""
        if self._pointer is None:
            self._pointer = pointer(self.owner)
        return self._pointer

    @property
    def address(self) -> int:
        """The address of the first byte: symbolic on the CPU, the allocator's on ``cuda``; 0 when there is no byte."""
        if not self._address and self.nbytes:
            self._address = next_address[0]
            next_address[0] += -(-self.nbytes // ALIGNMENT) * ALIGNMENT
        return self._address

    @property
    def id(self) -> int:
        """The number of this storage in events; given when it is first asked for."""
        if not self._id:
            self._id = next(_ids)
        return self._id

    @property
    def announced(self) -> bool:
        """Whether an event has named this storage."""
        return self._id != 0

    def announce(self) -> int:
        """Emit StorageMade once and return the id."""
        if not self._id and (emit := journal.emit) is not None:
            on = "cpu" if self.device is CPU else str(self.device)
            emit((_MADE, self.id, self.nbytes, on, self.address))
        return self._id or self.id

    def copied(self) -> Storage:
        """A storage of the same bytes on the same device."""
        return Storage(self.raw.copy(), self.device)

    def replace(self, owner: Array) -> None:
        """Let the storage own other memory (``resize_``, ``set_``); tensors re-read it when they are touched."""
        self.owner, self._raw, self._address = owner, None, 0
        self._pointer = None


class CudaStorage(Storage):
    """A storage that holds a block of a caching allocator and gives it back when it dies.

    Making one may raise OutOfMemoryError. A storage of no bytes holds no block.
    """

    __slots__ = ("allocator",)

    def __init__(self, owner: Array, on: device) -> None:
        index = 0 if on.index is None else on.index
        self.block, self._id = None, 0  # __del__ also runs where the device or the memory is not to be had
        self.allocator = device_at(index).allocator
        number = next(_ids)
        block = self.allocator.malloc(owner.nbytes, current_stream(index), number) if owner.nbytes else None
        super().__init__(owner, on, block)
        self._id = number
        if (emit := journal.emit) is not None:
            emit((StorageMade.code, number, self.nbytes, str(on), self.address))

    def copied(self) -> Storage:
        """A storage of the same bytes on the same device; may raise OutOfMemoryError."""
        return CudaStorage(self.raw.copy(), self.device)

    def __del__(self) -> None:
        _storage_freed(self)
        block, self.block = self.block, None
        if block is not None:
            self.allocator.free(block)


def _interface_pointer(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _field_pointer(array: Array) -> int:
    return _field(id(array) + _HEAD).value


# In NumPy's C ABI (``PyArrayObject_fields``) the data pointer stands right behind the object's head. Reading it there
# takes a tenth of the time of ``__array_interface__``, and every event of a view needs it.
_field, _HEAD = ctypes.c_size_t.from_address, object.__basicsize__
_probe = np.zeros(1)
pointer = _field_pointer if _field_pointer(_probe) == _interface_pointer(_probe) else _interface_pointer
"""The address of an array's first element in this process."""


def flat_bytes(array: Array) -> Array:
    """A dense array's memory as bytes, in address order; shares memory."""
    if not array.flags.c_contiguous:
        array = array.transpose(np.argsort([-s for s in array.strides], kind="stable"))
        if not array.flags.c_contiguous:
            raise ValueError("a storage needs dense memory")
    return array.reshape(-1).view(np.uint8)


def _storage_freed(storage: Storage) -> None:
    if storage._id and (emit := journal.emit) is not None:
        emit((StorageFreed.code, storage._id))


def _watch(recording: bool) -> None:
    """Finalisers cost time, so host storages have one only while something records."""
    if recording:
        Storage.__del__ = _storage_freed  # type: ignore[attr-defined]
    elif "__del__" in Storage.__dict__:
        del Storage.__del__  # type: ignore[attr-defined]


journal.watch(_watch)
