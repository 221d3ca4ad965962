"""``torch.Tensor`` as a class: its constructor, subclasses, and copies of whole tensor objects."""

from __future__ import annotations

import copy
import copyreg
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.device import device
from stridescope.engine.dispatch.torch_function import (
    begin_subclass,
    dispatches,
    torch_dispatch,
    torch_function,
    without,
)
from stridescope.engine.dtype import default_float, dtype
from stridescope.engine.layout import Layout, contiguous_strides, strided
from stridescope.engine.ops.creation import empty_strided, place_of
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.old_types import constructed
from stridescope.engine.ops.storage_objects import UntypedStorage, untyped
from stridescope.engine.tensor import Tensor, alias, bump_version, over

NO_DEEPCOPY = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
    "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001"
)

NO_NEW_EMPTY = (
    "The default implementation of __deepcopy__() for non-wrapper subclasses only works for subclass types that "
    "implement new_empty() and for which that function returns another instance of the same subclass. You should "
    "either properly implement new_empty() for your subclass or override __deepcopy__() if it is intended behavior for "
    "new_empty() to return an instance of a different type."
)
NO_CLONE = (
    "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that implement "
    "clone() and for which cloning returns another instance of the same subclass. You should either properly implement "
    "clone() for your subclass or override __deepcopy__() if it is intended behavior for clone() to return an instance "
    "of a different type."
)
# What lies in the ``__dict__`` of a tensor that nobody but the engine has put there.
OF_TENSOR = frozenset({*vars(Tensor), "_batch", "_example_of"})


def new_tensor_object(cls: type[Tensor], *args: Any, **kwargs: Any) -> Any:
    """``torch.Tensor(…)``: sizes give an uninitialised tensor, a sequence its values, in the default dtype."""
    on = kwargs.pop("device", None)
    if len(args) == 1 and isinstance(args[0], (float, complex)):
        raise TypeError(f"new(): data must be a sequence (got {type(args[0]).__name__})")
    made = constructed(default_float(), args or (0,), None if on is None else device(on))
    return made if cls is Tensor else as_subclass(made, cls)


def object_of(cls: type[Any], made: Tensor) -> Any:
    """A new tensor as an object of ``cls``; where that has slots of its own, another object that is the same tensor."""
    try:
        made.__class__ = cls
    except TypeError:
        other = object.__new__(cls)
        for slot in vars(Tensor)["__slots__"]:
            if not slot.startswith("__") and hasattr(made, slot):
                setattr(other, slot, getattr(made, slot))
        other.__dict__.update(made.__dict__)
        return other
    return made


def as_subclass(self: Tensor, cls: type[Any]) -> Any:
    """The same tensor as an object of a subclass, a view of this one."""
    return object_of(cls, op_call("alias")(self))


def make_subclass(cls: type[Any], data: Tensor, require_grad: bool = False, **_options: Any) -> Any:
    """``Tensor._make_subclass``: ``data`` without history as an object of ``cls``."""
    made = alias(data)
    made._version_counter = None
    made._requires_grad = require_grad
    return object_of(cls, made)


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Any:
    """A copy with a storage of its own; tensors that share memory share it in the copy too."""
    if self._node is not None:
        raise RuntimeError(NO_DEEPCOPY)
    if id(self) in memo:
        return memo[id(self)]
    made = _clone_of(self) if dispatches(type(self)) else _copy_of(self, memo)
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    own = {name: value for name, value in self.__dict__.items() if name not in OF_TENSOR}
    made.__dict__.update({name: copy.deepcopy(value, memo) for name, value in own.items()})
    for slot in copyreg._slotnames(type(self)) if type(self) is not Tensor else ():  # type: ignore[attr-defined]
        if slot not in OF_TENSOR and hasattr(self, slot):
            setattr(made, slot, copy.deepcopy(getattr(self, slot), memo))
    memo[id(self)] = made
    return made


def _copy_of(self: Tensor, memo: dict[int, Any]) -> Any:
    """A copy of the tensor itself; the storage's copy is shared by what shares the storage."""
    handle = untyped(self)
    twin: UntypedStorage = copy.deepcopy(handle, memo)
    memo[id(handle)] = twin
    made: Any = over(twin._over, self.layout_, self.dtype)
    made._requires_grad, made._conj, made._neg = self._requires_grad, self._conj, self._neg
    bump_version(made)  # PyTorch sets the storage of a tensor that is there already
    if type(self) is Tensor:
        return made
    with without(classes_only=True):
        if type(self.new_empty([])) is not type(self):
            raise RuntimeError(NO_NEW_EMPTY)
    return object_of(type(self), made)


def _clone_of(self: Any) -> Any:
    """A copy of a tensor that its class does everything for."""
    made = self.detach().clone()
    if type(made) is not type(self):
        raise RuntimeError(NO_CLONE)
    made._requires_grad = self._requires_grad
    return made


def shallow(self: Tensor) -> Any:
    """``copy.copy``: another object over the same storage, with the same attributes and without history."""
    made: Any = over(self.storage_, self.layout_, self.dtype)
    made._requires_grad, made._conj, made._neg = self._requires_grad, self._conj, self._neg
    bump_version(made)  # PyTorch sets the storage of a tensor that is there already
    made = object_of(type(self), made)
    made.__dict__.update({name: value for name, value in self.__dict__.items() if name not in OF_TENSOR})
    return made


def rebuilt(data: bytes, layout: tuple[Any, ...], kind: dtype, requires_grad: bool, cls: type[Any] = Tensor) -> Any:
    """The tensor of a pickle."""
    storage = UntypedStorage(0)._over
    storage.replace(np.frombuffer(data, np.uint8).copy())
    made: Any = over(storage, Layout(*layout), kind)
    made._requires_grad = requires_grad
    if cls is not Tensor:
        made.__class__ = cls
    return made


def reduced(self: Tensor, protocol: int) -> tuple[Any, ...]:
    """How a tensor is pickled: its storage's bytes and how it reads them."""
    data = self.storage_.raw.tobytes()
    kind = () if type(self) is Tensor else (type(self),)  # where torch is not importable, its classes have no name
    return rebuilt, (data, tuple(self.layout_), self.dtype, self._requires_grad, *kind)


def make_wrapper_subclass(
    cls: type[Any], size: Sequence[int], strides: Sequence[int] | None = None, storage_offset: int | None = None,
    memory_format: Any = None, dtype: dtype | None = None, layout: Any = strided, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False, dispatch_layout: bool = False,
) -> Any:  # fmt: skip
    """``Tensor._make_wrapper_subclass``: a tensor that only looks like one; its class does everything in its place.

    Raises TypeError for a class without a ``__torch_dispatch__``, which nothing would do anything for.
    """
    if cls.__torch_dispatch__ == Tensor.__torch_dispatch__:  # type: ignore[attr-defined]
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    places = contiguous_strides(tuple(size)) if strides is None else tuple(strides)
    made: Any = empty_strided.run(tuple(size), places, dtype, None, place_of(device), None, False)  # type: ignore[misc]
    made._requires_grad = requires_grad
    return object_of(cls, made)


METHODS: dict[str, Any] = {
    "__init_subclass__": classmethod(begin_subclass),
    "__torch_function__": classmethod(torch_function),
    "__torch_dispatch__": classmethod(torch_dispatch),
    "__new__": staticmethod(new_tensor_object),
    "as_subclass": as_subclass,
    "_make_subclass": staticmethod(make_subclass),
    "_make_wrapper_subclass": staticmethod(make_wrapper_subclass),
    "__copy__": shallow,
    "__deepcopy__": deepcopy,
    "__reduce_ex__": reduced,
}
