"""``torch.nn.Parameter`` and ``Buffer``: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

import importlib
from typing import Any

from stridescope.engine.autograd.history import mark_inference
from stridescope.engine.autograd.leaf import require_grad
from stridescope.engine.dispatch.plans import TENSOR_TYPES
from stridescope.engine.dispatch.torch_function import disabled
from stridescope.engine.tensor import Tensor, alias


def as_type(kind: type[Tensor], data: Tensor) -> Any:
    """A tensor of another class over the same storage, with no history."""
    source = alias(data.detach() if data.requires_grad else data)
    made = object.__new__(kind)
    for slot in ("_array", "dtype", "_storage", "_version_counter", "_requires_grad", "_node"):
        setattr(made, slot, getattr(source, slot))
    made.__dict__.update(source.__dict__)
    made._base_tensor = made._promised = None
    made._id, made._plain = 0, source._plain
    if data._inference:
        mark_inference(made)
    return made


class _Parameters(type):
    """Counts instances of a tensor's subclass that were made parameters as Parameters too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        own = super().__instancecheck__(instance)
        return (
            own or cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False) is True
        )


class Parameter(Tensor, metaclass=_Parameters):
    """A tensor that is a module's parameter; it requires grad unless told otherwise.

    Of an instance of a user's subclass of Tensor it is an instance of that class.
    """

    __slots__ = ()
    __torch_function__ = disabled

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """Wrap ``data`` (empty when None); the storage is shared, the history is not."""
        if data is None:
            from stridescope.engine import torch

            data = torch.empty(0)  # type: ignore[misc]
        if cls is Parameter and type(data) not in TENSOR_TYPES and not _is_ours(type(data)):
            return _of_subclass(data, requires_grad)
        made = as_type(cls, data)
        if requires_grad:
            require_grad(made)
        return made

    def __init__(self, *args: Any, **options: Any) -> None:
        """Nothing is left to do, whatever a subclass's ``__new__`` takes."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            found: Parameter = memo[id(self)]
            return found
        made = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = made
        return made

    def __copy__(self) -> Any:
        rebuild, arguments = self.__reduce_ex__(2)
        return rebuild(*arguments)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        attributes = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return _rebuilt, (self.data, self.requires_grad, attributes)


class _BufferKind(type):
    """What a buffer is: any tensor that ``Buffer`` has made."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Buffer:
            return isinstance(instance, Tensor) and bool(getattr(instance, "_is_buffer", False))
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferKind):
    """A tensor that is registered as a buffer when it is assigned to a module."""

    __slots__ = ()
    __torch_function__ = disabled

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        """Wrap ``data``; ``persistent`` says whether ``state_dict`` has it."""
        if data is None:
            from stridescope.engine import torch

            data = torch.empty(0)  # type: ignore[misc]
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    def __init__(self, *args: Any, **options: Any) -> None:
        """Nothing is left to do, whatever a subclass's ``__new__`` takes."""


def _is_ours(kind: type) -> bool:
    return issubclass(kind, (Parameter, Buffer)) or kind.__module__.partition(".")[0] in ("torch", "stridescope")


def _of_subclass(data: Tensor, requires_grad: bool) -> Any:
    """The parameter that keeps the class of its data; RuntimeError when ``detach`` does not."""
    made: Any = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
            f"instance of the same type, but return type {type(made).__name__} was found instead. To use the type as a "
            "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    vars(made)["_is_param"] = True
    return made


def _rebuilt(data: Tensor, requires_grad: bool, attributes: dict[str, Any]) -> Any:
    """A copied or unpickled parameter, which is a plain one: PyTorch forgets the subclass."""
    made = Parameter(data, requires_grad)
    vars(made).update(attributes)
    return made


Parameter.__module__ = Buffer.__module__ = "torch.nn.parameter"
TENSOR_TYPES.add(Parameter)


def __getattr__(name: str) -> Any:
    """Uninitialized ones need ``torch`` itself: loaded when asked for."""
    if name in ("UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy"):
        return getattr(importlib.import_module("stridescope.engine.torch.nn.uninitialized"), name)
    raise AttributeError(f"module 'torch.nn.parameter' has no attribute '{name}'")
