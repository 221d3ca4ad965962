"""``torch.Tensor`` as a class: its constructor, subclasses, and copies of whole tensor objects."""

from __future__ import annotations

import copy
from typing import Any, NoReturn

import numpy as np

from stridescope.engine.device import device
from stridescope.engine.dispatch.torch_function import begin_subclass, torch_function
from stridescope.engine.dtype import default_float, dtype
from stridescope.engine.layout import Layout
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.old_types import constructed
from stridescope.engine.ops.storage_objects import UntypedStorage, untyped
from stridescope.engine.tensor import Tensor, alias, over

NO_DEEPCOPY = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
    "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001"
)


def new_tensor_object(cls: type[Tensor], *args: Any, **kwargs: Any) -> Any:
    """``torch.Tensor(…)``: sizes give an uninitialised tensor, a sequence its values, in the default dtype."""
    on = kwargs.pop("device", None)
    if len(args) == 1 and isinstance(args[0], (float, complex)):
        raise TypeError(f"new(): data must be a sequence (got {type(args[0]).__name__})")
    made = constructed(default_float(), args or (0,), None if on is None else device(on))
    return made if cls is Tensor else as_subclass(made, cls)


def as_subclass(self: Tensor, cls: type[Any]) -> Any:
    """The same tensor as an object of a subclass, a view of this one."""
    made = op_call("alias")(self)
    made.__class__ = cls
    return made


def make_subclass(cls: type[Any], data: Tensor, require_grad: bool = False, **_options: Any) -> Any:
    """``Tensor._make_subclass``: ``data`` without history as an object of ``cls``."""
    made = alias(data)
    made._version_counter = None
    made.__class__ = cls
    made._requires_grad = require_grad
    return made


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Any:
    """A copy with a storage of its own; tensors that share memory share it in the copy too."""
    if self._node is not None:
        raise RuntimeError(NO_DEEPCOPY)
    if id(self) in memo:
        return memo[id(self)]
    handle = untyped(self)
    twin: UntypedStorage = copy.deepcopy(handle, memo)
    memo[id(handle)] = twin
    made: Any = over(twin._over, self.layout_, self.dtype)
    made._requires_grad, made._conj, made._neg = self._requires_grad, self._conj, self._neg
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    if type(self) is not Tensor:
        made.__class__ = type(self)
        made.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items() if not k.startswith("_")})
    memo[id(self)] = made
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


def make_wrapper_subclass(*_args: Any, **_options: Any) -> NoReturn:
    """A tensor of a subclass without memory is not to be had."""
    raise NotImplementedError("torch.Tensor._make_wrapper_subclass is not in Stridescope yet")


METHODS: dict[str, Any] = {
    "__init_subclass__": classmethod(begin_subclass),
    "__torch_function__": classmethod(torch_function),
    "__new__": staticmethod(new_tensor_object),
    "as_subclass": as_subclass,
    "_make_subclass": staticmethod(make_subclass),
    "_make_wrapper_subclass": staticmethod(make_wrapper_subclass),
    "__deepcopy__": deepcopy,
    "__reduce_ex__": reduced,
}
