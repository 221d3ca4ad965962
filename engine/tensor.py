"""The Tensor: sizes, strides and an offset over a storage, plus what autograd knows of it.

Here stand the state of a tensor and how tensors are made from arrays and from other tensors' storages. What one
can do with a tensor (its ops) is declared in :mod:`stridescope.engine.ops` and attached to this class.

A tensor keeps one strided NumPy array over its storage; sizes and strides are read from it. Everything that most
tensors never need (storage object, version counter, base, hooks, grad) has a default on the class and is made on
demand: that keeps a small op close to the cost of NumPy's.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np

from stridescope.engine.announce import record_values, tensor_id
from stridescope.engine.device import CPU, device
from stridescope.engine.dtype import FROM_NUMPY, dtype
from stridescope.engine.events import (
    TensorChanged,
    TensorFreed,
    VersionBumped,
    journal,
)
from stridescope.engine.events.bundles import GONE
from stridescope.engine.layout import Layout, row_major
from stridescope.engine.storage import (
    Array,
    CudaStorage,
    Storage,
    Version,
)
from stridescope.engine.storage import pointer as _pointer

_new = object.__new__
_FREED = TensorFreed.code


class Size(tuple[int, ...]):
    """``torch.Size``: a tuple of sizes that prints as PyTorch prints it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def numel(self) -> int:
        """The product of the sizes."""
        result = 1
        for size in self:
            result *= size
        return result

    def __getitem__(self, key: Any) -> Any:
        item = tuple.__getitem__(self, key)
        return Size(item) if isinstance(key, slice) else item

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)


Size.__module__ = "torch"


class Tensor:
    """A multi-dimensional view of a storage; the documentation of its methods is PyTorch's."""

    __slots__ = (
        "__dict__", "__weakref__", "_array", "_base_tensor", "_id", "_node", "_plain", "_promised", "_requires_grad",
        "_storage", "_version_counter", "dtype",
    )  # fmt: skip

    # Set on every tensor:
    _array: Array
    dtype: dtype
    _storage: Storage | None
    _version_counter: Version | None
    _requires_grad: bool  # True for a leaf that asks for gradients and for every tensor with a grad_fn
    _node: Any  # grad_fn
    _base_tensor: Any  # None for what is no view
    _plain: bool  # on the CPU, no inference tensor, no conjugate or negative bit: the shortest path is open
    _id: int  # the number in events; 0 before one has named it
    _promised: tuple[int, int] | None  # the number and address under which the storage was announced before it was made
    # Set on the few tensors that need them; these are the defaults (reading one takes three times a slot's time):
    _device = CPU
    _conj_bit = False
    _neg_bit = False
    _viewed = False  # some view of it has been made
    _output_nr = 0
    _accumulator: Any = None  # weak reference to the leaf's AccumulateGrad node
    _grad: Any = None
    _hooks: Any = None
    _post_hooks: Any = None
    _retains_grad = False
    _view_info: Any = None  # how this view was made, for rebasing its history after an in-place write
    _inference = False
    _detached = False  # whether detach_() took it out of a graph
    _empty_offset = 0

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

        # What stridescope.engine.ops attaches: operators answer with tensors, whatever the operand.
        __add__: Any
        __radd__: Any
        __sub__: Any
        __rsub__: Any
        __mul__: Any
        __rmul__: Any
        __truediv__: Any
        __rtruediv__: Any
        __floordiv__: Any
        __rfloordiv__: Any
        __mod__: Any
        __rmod__: Any
        __pow__: Any
        __rpow__: Any
        __matmul__: Any
        __rmatmul__: Any
        __and__: Any
        __rand__: Any
        __or__: Any
        __ror__: Any
        __xor__: Any
        __rxor__: Any
        __lshift__: Any
        __rlshift__: Any
        __rshift__: Any
        __rrshift__: Any
        __neg__: Any
        __pos__: Any
        __abs__: Any
        __invert__: Any
        __eq__: Any
        __ne__: Any
        __lt__: Any
        __le__: Any
        __gt__: Any
        __ge__: Any
        __getitem__: Any
        __setitem__: Any
        __iter__: Any
        __len__: Any
        __bool__: Any
        __float__: Any
        __int__: Any
        __index__: Any

    @property
    def device(self) -> device:
        """Where the storage lives."""
        return self._device

    @device.setter
    def device(self, on: device) -> None:
        self._device, self._plain = on, on is CPU and not (self._conj_bit or self._neg_bit or self._inference)

    @property
    def _conj(self) -> bool:
        """Whether the values are read as their complex conjugates."""
        return self._conj_bit

    @_conj.setter
    def _conj(self, bit: bool) -> None:
        self._conj_bit, self._plain = bit, not (bit or self._neg_bit or self._inference) and self._device is CPU

    @property
    def _neg(self) -> bool:
        """Whether the values are read with their sign changed."""
        return self._neg_bit

    @_neg.setter
    def _neg(self, bit: bool) -> None:
        self._neg_bit, self._plain = bit, not (bit or self._conj_bit or self._inference) and self._device is CPU

    @property
    def layout_(self) -> Layout:
        """Sizes, strides and offset, in elements."""
        array = self._array
        item = array.itemsize
        return Layout(array.shape, tuple([s // item for s in array.strides]), self.offset)

    @property
    def shape(self) -> Size:
        """The sizes, as ``torch.Size``."""
        return Size(self._array.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides, in elements."""
        item = self._array.itemsize
        return tuple([s // item for s in self._array.strides])

    @property
    def offset(self) -> int:
        """Where the first element lies in the storage, in elements."""
        storage = self._storage
        if storage is None or self._array.size == 0:  # NumPy gives an empty array no address
            return self._empty_offset
        if storage.owner is self._array:
            return 0
        distance: int = _pointer(self._array) - storage.pointer
        return distance // self._array.itemsize

    @property
    def storage_(self) -> Storage:
        """The storage; made when first asked for, over the array that the op gave."""
        storage = self._storage
        if storage is None:
            storage = self._storage = Storage(self._array)
            if self._promised is not None:
                (storage._id, storage._address), storage.told = self._promised, True
        return storage

    @storage_.setter
    def storage_(self, storage: Storage) -> None:
        if self._storage is None and self._promised is not None:
            self._storage = self.storage_  # made now, so that its end is told
        self._storage = storage

    @property
    def version_counter(self) -> Version:
        """The counter of in-place writes, shared with views."""
        counter = self._version_counter
        if counter is None:
            counter = self._version_counter = Version(self._id)
        return counter

    @property
    def requires_grad(self) -> bool:
        """Whether autograd records what happens to this tensor."""
        return self._requires_grad

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made it."""
        return self._node is None


Tensor.__module__ = "torch"
Tensor.__qualname__ = "Tensor"


def fresh(array: Array, kind: dtype, on: device = CPU) -> Tensor:
    """A new tensor that owns ``array``'s memory.

    ``array`` must be dense and not shared with another tensor. On ``cuda`` a block of the device's allocator is
    taken for it; that may raise OutOfMemoryError.
    """
    tensor = _new(Tensor)
    if not array.size and not any(array.strides) and not isinstance(array.base, bytearray):  # as NumPy makes them
        array = canonical(array)
    tensor._array, tensor.dtype, tensor._requires_grad = array, kind, False
    tensor._storage = tensor._version_counter = tensor._node = tensor._base_tensor = tensor._promised = None
    tensor._plain, tensor._id = True, 0
    if on is not CPU:
        place(tensor, on)
    return tensor


class Scratch:
    """While one is open, results on ``cuda`` take no block: their values are written into another tensor at once.

    A GPU's kernel writes ``out=`` and in-place results where they belong; here they pass through the host.
    """

    depth = 0

    def __enter__(self) -> None:
        Scratch.depth += 1

    def __exit__(self, *failure: object) -> None:
        Scratch.depth -= 1


def place(tensor: Tensor, on: device) -> None:
    """Give a new tensor memory on another device than the CPU; raises OutOfMemoryError when there is none left."""
    if on.type == "meta" or (on.type == "cuda" and Scratch.depth):
        tensor._storage = Storage(tensor._array, on)
    elif on.type == "cuda":
        tensor._storage = CudaStorage(tensor._array, on)
    else:
        raise RuntimeError(f"Stridescope has no {on.type} device: use cpu, cuda or meta")
    tensor.device = on


def dense(array: Array) -> Array:
    """``array`` itself when it owns dense memory in canonical row-major strides, else such a copy."""
    if not array.flags.c_contiguous:
        return np.ascontiguousarray(array).reshape(array.shape)
    return canonical(array)


def canonical(array: Array) -> Array:
    """The same row-major memory with PyTorch's strides for dims of size 0 and 1."""
    strides = row_major(array.shape, array.itemsize)
    if array.strides == strides:
        return array
    return np.ndarray(array.shape, array.dtype, array, 0, strides)


def blank_with(shape: tuple[int, ...], strides: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    """An array without elements that has these strides (in bytes); ``fresh`` leaves them as they are."""
    return np.ndarray(shape, kind, bytearray(), 0, strides)


def strided(storage: Storage, layout: Layout, kind: dtype) -> Array:
    """An array that reads ``storage`` by ``layout``; raises ValueError when it would leave the storage."""
    item = kind.itemsize
    strides = tuple(s * item for s in layout.strides)
    if 0 in layout.sizes:
        return blank_with(layout.sizes, strides, kind.np)
    return np.ndarray(layout.sizes, kind.np, storage.raw, layout.offset * item, strides)


def over(storage: Storage, layout: Layout, kind: dtype) -> Tensor:
    """A new tensor that reads ``storage`` by ``layout``, with a version counter of its own."""
    tensor = fresh(strided(storage, layout, kind), kind)
    tensor._storage = storage
    if 0 in layout.sizes:
        tensor._empty_offset = layout.offset
    if storage.device is not CPU:
        tensor.device = storage.device
    return tensor


def alias(source: Tensor, layout: Layout | None = None, kind: dtype | None = None) -> Tensor:
    """A tensor on ``source``'s storage that shares its version counter; autograd knows nothing of it yet."""
    storage = source.storage_
    kind = kind or source.dtype
    tensor: Tensor = _new(Tensor)
    tensor._array = source._array if layout is None else strided(storage, layout, kind)
    tensor.dtype, tensor._requires_grad = kind, False
    tensor._node = tensor._base_tensor = tensor._promised = None
    tensor._plain, tensor._id = True, 0
    tensor._storage, tensor._version_counter = storage, source.version_counter
    if not tensor._array.size:
        tensor._empty_offset = source.offset if layout is None else layout.offset
    if not source._plain:
        tensor.device = source.device
        tensor._conj, tensor._neg = source._conj, source._neg
    return tensor


def from_array(array: Array, on: device = CPU) -> Tensor:
    """A tensor of a copy of ``array`` (any NumPy array of a dtype that PyTorch has)."""
    return fresh(dense(np.array(array)), FROM_NUMPY[array.dtype], on)


def bump_version(tensor: Tensor) -> None:
    """Count an in-place write, and tell the recording the new version and values."""
    counter = tensor.version_counter
    if (emit := journal.emit) is not None:
        tensor_id(tensor)
    counter.value += 1
    if emit is not None:
        emit((VersionBumped.code, counter.id, counter.value))
        record_values(tensor.storage_, tensor.dtype)


def moved(tensor: Tensor) -> None:
    """Tell the recording that an existing tensor now has another layout or storage."""
    if tensor._id and (emit := journal.emit) is not None:
        sid = tensor.storage_.announce()
        emit((TensorChanged.code, tensor._id, sid, *tensor.layout_, tensor.dtype.name))


def resize(storage: Storage, nbytes: int) -> None:
    """Give a storage room for ``nbytes``; what fits is kept, and the tensors on it read the new memory."""
    if nbytes <= storage.nbytes:
        storage.replace(storage.raw[:nbytes])
        return
    places = [(tensor, tensor.layout_) for tensor in _readers(storage)]
    memory = np.zeros(nbytes, np.uint8)
    memory[: storage.nbytes] = storage.raw
    storage.replace(memory)
    for tensor, layout in places:
        if layout.extent() * tensor.dtype.itemsize <= nbytes:
            tensor._array = strided(storage, layout, tensor.dtype)
            moved(tensor)


def _readers(storage: Storage) -> list[Tensor]:
    """The living tensors on a storage. Asking the garbage collector is slow, but storages are rarely resized."""
    found = []
    for holder in gc.get_referrers(storage):
        if isinstance(holder, Tensor) and holder._storage is storage:
            found.append(holder)
    return found


def _tensor_freed(tensor: Tensor) -> None:
    if (number := tensor._id) and (emit := journal.emit) is not None:
        if tensor._storage is None and (promised := tensor._promised) is not None:
            journal.bundle((GONE, number, promised[0]))
        else:
            emit((_FREED, number))


def _watch(recording: bool) -> None:
    """Finalisers cost time, so tensors have one only while something records."""
    if recording:
        Tensor.__del__ = _tensor_freed  # type: ignore[attr-defined]
    elif "__del__" in Tensor.__dict__:
        del Tensor.__del__  # type: ignore[attr-defined]


journal.watch(_watch)
