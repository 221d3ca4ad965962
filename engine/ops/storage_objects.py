"""What ``tensor.untyped_storage()`` and ``tensor.storage()`` return: a storage as a list of bytes or of elements."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from stridescope.engine.device import CPU, device
from stridescope.engine.dtype import BY_NAME, DTYPES, default_float, dtype, scalar_name
from stridescope.engine.dtype import dtype as DType
from stridescope.engine.layout import contiguous
from stridescope.engine.storage import Array, Storage
from stridescope.engine.tensor import Tensor, over, resize
from stridescope.engine.warn import warn

_handles: weakref.WeakKeyDictionary[Storage, weakref.ref[UntypedStorage]] = weakref.WeakKeyDictionary()


def untyped(tensor: Tensor) -> UntypedStorage:
    """``tensor.untyped_storage()``: one object per storage for as long as somebody holds it."""
    return handle(tensor.storage_)


def handle(storage: Storage) -> UntypedStorage:
    """The user's object for an engine storage."""
    reference = _handles.get(storage)
    found = None if reference is None else reference()
    if found is None:
        found = object.__new__(UntypedStorage)
        found._over = storage
        _handles[storage] = weakref.ref(found)
    return found


class _StorageBase:
    """What all storages are."""


class UntypedStorage(_StorageBase):
    """The bytes behind tensors. Two tensors share memory exactly when they share this object."""

    _over: Storage

    def __init__(self, data: Any = 0, *, device: Any = None) -> None:
        if isinstance(data, int) and data < 0:
            raise RuntimeError(
                "[enforce fail at alloc_cpu.cpp:98] ((ptrdiff_t)nbytes) >= 0. alloc_cpu() seems to have been called "
                f"with negative number: {2**64 + data}"
            )
        for item in () if isinstance(data, int) else data:
            if not isinstance(item, int):
                raise RuntimeError(
                    f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(data).__name__}), "
                    f"but one of the items was of type {type(item).__name__} instead of int"
                )
        memory = np.zeros(data, np.uint8) if isinstance(data, int) else np.array(list(data), np.uint8)
        self._over = Storage(memory)
        _handles[self._over] = weakref.ref(self)

    def nbytes(self) -> int:
        """The size in bytes."""
        return self._over.nbytes

    size = __len__ = nbytes

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._over.address

    @property
    def device(self) -> device:
        """Where the bytes lie."""
        return self._over.device

    @property
    def is_cuda(self) -> bool:
        """Whether they lie on a GPU."""
        return self._over.device.type == "cuda"

    @property
    def _cdata(self) -> int:
        return id(self._over)

    def resizable(self) -> bool:
        """Whether ``resize_`` works; memory shared with NumPy can't be resized."""
        return self._over.resizable

    def resize_(self, size: int) -> UntypedStorage:
        """Change the size in bytes; raises RuntimeError when the memory belongs to NumPy."""
        if not self._over.resizable:
            raise RuntimeError("Trying to resize storage that is not resizable")
        resize(self._over, size)
        return self

    def element_size(self) -> int:
        """Always 1."""
        return 1

    def get_device(self) -> int:
        """The index of the GPU; -1 on the CPU."""
        return -1 if self.device.index is None else self.device.index

    def is_shared(self) -> bool:
        """Whether the memory is shared with other processes; always so on a GPU."""
        return self.is_cuda

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked."""
        return False

    def tolist(self) -> list[int]:
        """The bytes as ints."""
        return self._over.raw.tolist()  # type: ignore[no-any-return]

    def _place(self, index: int) -> int:
        size = self._over.nbytes
        if not -size <= index < size:
            raise IndexError(f"index {index} out of range for storage of size {size}")
        return index % size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return handle(Storage(self._over.raw[index]))
        return int(self._over.raw[self._place(index)])

    def __setitem__(self, index: Any, value: int) -> None:
        self._over.raw[index if isinstance(index, slice) else self._place(index)] = value

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Copy another storage's bytes into this one."""
        self._over.raw[...] = source._over.raw
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        self._over.raw[...] = value
        return self

    def clone(self) -> UntypedStorage:
        """A copy of the bytes, on the same device."""
        return handle(self._over.copied())

    def cpu(self) -> UntypedStorage:
        """The storage itself, or a copy of it in host memory."""
        return self if self.device.type == "cpu" else handle(Storage(self._over.raw.copy()))

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        if id(self._over) not in memo:
            memo[id(self._over)] = self.clone()
        return memo[id(self._over)]  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        numbers = "".join(f" {byte}\n" for byte in self.tolist())
        return f"{numbers}[torch.storage.UntypedStorage(device={self.device}) of size {self._over.nbytes}]"


UntypedStorage.__module__ = "torch.storage"


class _Said:
    """Whether the deprecation of TypedStorage was said already."""

    once = False


def _deprecated() -> None:
    if not _Said.once:
        _Said.once = True
        warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
            "class. This should only matter to you if you are using storages directly.  To access UntypedStorage "
            "directly, use tensor.untyped_storage() instead of tensor.storage()"
        )


OLD_CASTS = {
    "double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
    "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "complex_float": "complex64",
    "complex_double": "complex128",
}  # fmt: skip
_INVALID = " received an invalid combination of arguments. Expected one of:"
_FORMS = (
    "\n * (*, torch.device device, torch.dtype dtype)\n * (int size, *, torch.device device, torch.dtype dtype)"
    "\n * (Sequence data, *, torch.device device, torch.dtype dtype)"
    "\n * (*, UntypedStorage wrap_storage, torch.dtype dtype)"
)
_OLD_FORMS = "\n * no arguments\n * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)"


def _check_arguments(name: str, forms: str, args: tuple[Any, ...], wrap_storage: Any) -> None:
    head = f"{name}{_INVALID}{forms}"
    if wrap_storage is not None:
        if args:
            raise RuntimeError(f"{head}\nNo positional arguments should be given when using 'wrap_storage'")
        if not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(f"{head}\nArgument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
    elif len(args) > 1:
        raise RuntimeError(f"{head}\nToo many positional arguments")
    elif args and not isinstance(args[0], (int, Sequence)):
        raise TypeError(f"{head}\nArgument type not recognized: {type(args[0])}")


def _elements_of(args: tuple[Any, ...], kind: dtype) -> UntypedStorage:
    """New memory for a number of elements, or holding those of a sequence."""
    given = args[0] if args else 0
    if isinstance(given, str):
        raise TypeError("new(): invalid data type 'str'")
    array = np.zeros(given, kind.np) if isinstance(given, int) else np.array(list(given), kind.np)
    return handle(Storage(array.view(np.uint8) if array.size else np.zeros(0, np.uint8)))


class TypedStorage:
    """A storage read as elements of one dtype; deprecated in PyTorch, and says so once."""

    kind: ClassVar[dtype | None] = None  # of the old names: FloatStorage is float32

    def __new__(cls, *args: Any, wrap_storage: Any = None, **options: Any) -> TypedStorage:
        """The old names make plain typed storages of their dtype."""
        if cls.kind is None:
            return object.__new__(cls)
        _check_arguments(f"{cls}.__new__", _OLD_FORMS, args, wrap_storage)
        for name in options:
            raise RuntimeError(f"{cls}.__new__{_INVALID}{_OLD_FORMS}\nKeyword argument '{name}' cannot be specified")
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.kind)

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            _deprecated()
            _check_arguments("TypedStorage.__init__", _FORMS, args, wrap_storage)
        if wrap_storage is not None and dtype is None:
            raise RuntimeError(f"TypedStorage.__init__{_INVALID}{_FORMS}\nArgument 'dtype' must be specified")
        kind: Any = default_float() if dtype is None else dtype
        if not isinstance(kind, DType):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        self.dtype = kind
        self._untyped_storage = _elements_of(args, kind) if wrap_storage is None else wrap_storage

    @property
    def is_cuda(self) -> bool:
        """Whether the elements lie on a GPU."""
        _deprecated()
        return self._untyped_storage.is_cuda

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The old name of the class, or with an argument the elements as another dtype."""
        _deprecated()
        if dtype is None:
            return f"{'torch.cuda' if self.is_cuda else 'torch'}.{scalar_name(self.dtype)}Storage"
        return self._as(dtype if isinstance(dtype, DType) else LEGACY[str(dtype).rpartition(".")[2]].kind)  # type: ignore[attr-defined]

    def _as(self, kind: DType) -> TypedStorage:
        """The elements as another dtype; the storage itself where they have it."""
        _deprecated()
        if kind is self.dtype:
            return self
        made = TypedStorage(self._elements.size, dtype=kind)
        made._elements[...] = self._elements
        return made

    @property
    def _elements(self) -> Array:
        _deprecated()
        raw = self._untyped_storage._over.raw
        return raw[: raw.size // self.dtype.itemsize * self.dtype.itemsize].view(self.dtype.np)

    @property
    def device(self) -> device:
        """Where the elements lie."""
        _deprecated()
        return self._untyped_storage.device

    def untyped(self) -> UntypedStorage:
        """The same storage as bytes."""
        _deprecated()
        return self._untyped_storage

    def nbytes(self) -> int:
        """The size in bytes."""
        _deprecated()
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        """How many elements there are."""
        return self._elements.size

    __len__ = size

    def data_ptr(self) -> int:
        """The address of the first element."""
        _deprecated()
        return self._untyped_storage.data_ptr()

    def element_size(self) -> int:
        """Bytes per element."""
        _deprecated()
        return self.dtype.itemsize

    def resize_(self, size: int) -> None:
        """Change the number of elements."""
        _deprecated()
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return self._elements.tolist()  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        elements = self._elements
        if not -elements.size <= index < elements.size:
            raise IndexError(f"index {index} out of range for storage of size {elements.size}")
        return elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._elements[...] = value
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Copy another storage's elements into this one, converting them."""
        self._elements[...] = source._elements
        return self

    def clone(self) -> TypedStorage:
        """A copy of the elements."""
        _deprecated()
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype, _internal=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._untyped_storage is other._untyped_storage

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        numbers = " " + "\n ".join(map(str, self.tolist()))
        return (
            f"{numbers}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
        )


TypedStorage.__module__ = "torch.storage"


def typed(self: Tensor) -> TypedStorage:
    """``tensor.storage()``."""
    _deprecated()
    return TypedStorage(wrap_storage=untyped(self), dtype=self.dtype, _internal=True)


def storage_of(source: Any) -> tuple[Storage, dtype | None]:
    """The engine's storage of a user's storage object, and its dtype if it has one."""
    if isinstance(source, TypedStorage):
        return source._untyped_storage._over, source.dtype
    return source._over, None


def tensor_on(storage: Storage, kind: dtype) -> Tensor:
    """A one-dimensional tensor over all of a storage."""
    return over(storage, contiguous((storage.nbytes // kind.itemsize,)), kind)


def _cast(kind: DType) -> Callable[[TypedStorage], TypedStorage]:
    def cast(self: TypedStorage) -> TypedStorage:
        return self._as(kind)

    cast.__doc__ = f"The elements as {kind.name}."
    return cast


for _word, _kind in OLD_CASTS.items():
    setattr(TypedStorage, _word, _cast(BY_NAME[_kind]))


class _OldName(type):
    """The type of the old class names, whose instances are typed storages of one dtype on the CPU."""

    kind: dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.kind and instance.device == CPU


class _LegacyStorage(TypedStorage, metaclass=_OldName):
    """What the old class names are."""


# The old class names: torch.FloatStorage is a class that only names what storage_type() answers.
LEGACY: dict[str, type] = {
    name: _OldName(name, (_LegacyStorage,), {"__module__": "torch", "kind": kind})
    for name, kind in ((f"{scalar_name(kind)}Storage", kind) for kind in DTYPES)
}

METHODS: dict[str, Any] = {
    "untyped_storage": untyped,
    "storage": typed,
    "_typed_storage": lambda self: TypedStorage(wrap_storage=untyped(self), dtype=self.dtype, _internal=True),
    "storage_type": lambda self: LEGACY[f"{scalar_name(self.dtype)}Storage"],
}
__all__ = [
    "LEGACY", "METHODS", "TypedStorage", "UntypedStorage", "_LegacyStorage", "_StorageBase", "resize", "storage_of",
    "tensor_on",
]  # fmt: skip
