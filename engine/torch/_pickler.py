"""Pickles an object as PyTorch does: storages are kept aside, and everything of ours goes by PyTorch's names."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import Any

from stridescope.engine.device import META
from stridescope.engine.dtype import dtype, scalar_name, uint8
from stridescope.engine.layout import Word
from stridescope.engine.ops.storage_objects import LEGACY, TypedStorage, UntypedStorage, untyped
from stridescope.engine.storage import Storage
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch import _utils
from stridescope.engine.torch._location import location_of
from stridescope.engine.torch.nn.parameter import Parameter
from stridescope.engine.torch.nn.uninitialized import is_lazy

ROOM = "stridescope.engine."
# dtypes that are younger than PyTorch's storage classes: their storages are saved as bytes
WITHOUT_STORAGE_CLASS = ("uint16", "uint32", "uint64")
_Python: Any = pickle._Pickler


class CheckpointPickler(_Python):  # type: ignore[misc]
    """Python's own pickler; after ``dump``, ``storages`` holds what the pickle refers to, in the order of its keys."""

    def __init__(self, file: Any, protocol: int, legacy: bool = False) -> None:
        super().__init__(file, protocol)
        self._legacy = legacy
        self.storages: list[Storage] = []
        self._keys: dict[int, str] = {}
        self._kinds: dict[int, dtype] = {}

    def persistent_id(self, obj: Any) -> Any:
        """A storage is named by its key; raises RuntimeError when it is read as two dtypes."""
        if not isinstance(obj, (TypedStorage, UntypedStorage)):
            return None
        plain = isinstance(obj, UntypedStorage)
        storage, kind = (obj._over, uint8) if plain else (obj._untyped_storage._over, obj.dtype)  # type: ignore[union-attr]
        if storage.nbytes and self._kinds.setdefault(id(storage), kind) is not kind:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        key = self._keys.get(id(storage))
        if key is None:
            key = self._keys[id(storage)] = str(len(self.storages))
            self.storages.append(storage)
        named = UntypedStorage if plain else LEGACY[f"{scalar_name(kind)}Storage"]
        view = (None,) if self._legacy else ()
        return ("storage", named, key, location_of(storage), storage.nbytes // kind.itemsize, *view)

    def count(self, storage: Storage) -> int:
        """How many elements a storage has, of the dtype that it was pickled as."""
        return storage.nbytes // self._kinds[id(storage)].itemsize if storage.nbytes else 0

    def reducer_override(self, obj: Any) -> Any:
        """How our own objects are rebuilt; the rest is left to Python."""
        if is_lazy(obj):
            return NotImplemented
        if isinstance(obj, Parameter):
            return _reduced_parameter(obj)
        if isinstance(obj, Tensor):
            return _reduced(obj)
        if isinstance(obj, (dtype, Word)):
            return obj.name
        if isinstance(obj, type) or type(obj).__name__ == "function":
            return obj.__qualname__ if _is_ours(obj) else NotImplemented
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Name a class, a function or a constant of ours as PyTorch does, without looking it up there."""
        if not _is_ours(obj):
            super().save_global(obj, name)
            return
        module = "torch" if isinstance(obj, (dtype, Word)) else obj.__module__.removeprefix(ROOM)
        self.write(pickle.GLOBAL + f"{module}\n{name or obj.__qualname__}\n".encode())
        self.memoize(obj)


def _is_ours(thing: Any) -> bool:
    module = getattr(thing, "__module__", None) or ""
    return isinstance(thing, (dtype, Word)) or module == "torch" or module.startswith(("torch.", f"{ROOM}torch"))


def _attributes(tensor: Tensor) -> dict[str, Any]:
    """What the user has set on a tensor object."""
    return {name: value for name, value in tensor.__dict__.items() if not name.startswith("_")}


def _reduced_parameter(param: Any) -> tuple[Any, ...]:
    arguments = (param.data, param.requires_grad, OrderedDict())  # type: ignore[var-annotated]
    attributes = _attributes(param)
    if attributes:
        return _utils._rebuild_parameter_with_state, (*arguments, attributes)
    return _utils._rebuild_parameter, arguments


def _reduced(tensor: Tensor) -> tuple[Any, ...]:
    function, arguments = _plain(tensor)
    attributes = _attributes(tensor)
    if type(tensor) is Tensor and not attributes:
        return function, arguments
    return _utils._rebuild_from_type_v2, (function, type(tensor), arguments, attributes)


def _plain(tensor: Tensor) -> tuple[Any, tuple[Any, ...]]:
    layout, kind = tensor.layout_, tensor.dtype
    if tensor.device is META:
        return _utils._rebuild_meta_tensor_no_storage, (kind, layout.sizes, layout.strides, tensor.requires_grad)
    place = (layout.offset, tuple(layout.sizes), tuple(layout.strides), tensor.requires_grad, OrderedDict())  # type: ignore[var-annotated]
    memory = untyped(tensor)
    if kind.name in WITHOUT_STORAGE_CLASS:
        return _utils._rebuild_tensor_v3, (memory, *place, kind)
    storage = TypedStorage(wrap_storage=memory, dtype=kind, _internal=True)
    bits = {name: True for name, on in (("conj", tensor._conj), ("neg", tensor._neg)) if on}
    return _utils._rebuild_tensor_v2, (storage, *place, *((bits,) if bits else ()))
