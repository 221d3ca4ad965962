"""Parameters and buffers of lazy modules: they have a device and a dtype, but no shape until ``materialize``."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.parameter import Buffer, Parameter

_VALUES = ("_array", "dtype", "_storage", "_version_counter")
_BLANK = "_blank"  # where in ``__dict__`` the tensor without elements lies that carries device and dtype


class UninitializedTensorMixin:
    """A tensor without a shape; whatever needs its values raises ValueError, ``shape`` RuntimeError."""

    __slots__ = ()
    cls_to_become: ClassVar[type[Tensor]]
    _array = property(lambda self: self._refuse())

    @classmethod
    def _refuse(cls) -> NoReturn:
        raise ValueError(
            "Attempted to use an uninitialized parameter. This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call "
            "`forward` with a dummy batch to initialize the parameters before calling torch functions"
        )

    @classmethod
    def _made(cls, requires_grad: bool, device: Any, dtype: Any) -> Any:
        made: Any = object.__new__(cls)
        made._storage = made._version_counter = made._node = made._base_tensor = made._promised = None
        made._plain, made._id = True, 0
        made._requires_grad = requires_grad
        made.data = FUNCTIONS["torch"]["empty"](0, device=device, dtype=dtype)
        return made

    @property
    def data(self) -> Any:
        """The tensor without elements that says where and of which dtype the parameter will be."""
        return self.__dict__[_BLANK]

    @data.setter
    def data(self: Any, value: Any) -> None:
        self.__dict__[_BLANK] = value
        self.dtype = value.dtype

    device: Any = property(lambda self: self.data.device)

    @property
    def shape(self) -> NoReturn:
        """Not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a tensor of this shape, with unset values; device and dtype stay unless they are given."""
        blank: Any = self.__dict__.pop(_BLANK)
        made = FUNCTIONS["torch"]["empty"](shape, device=device or blank.device, dtype=dtype or blank.dtype)
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        for slot in _VALUES:
            setattr(self, slot, getattr(made, slot))
        self.__dict__.update(made.__dict__)

    def share_memory_(self) -> NoReturn:
        """Not possible yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def size(self, dim: int | None = None) -> Any:
        """The size of the tensor without elements."""
        return self.data.size() if dim is None else self.data.size(dim)

    def is_floating_point(self) -> bool:
        """Whether it will hold floating-point numbers."""
        return bool(self.data.is_floating_point())

    def is_complex(self) -> bool:
        """Whether it will hold complex numbers."""
        return bool(self.data.is_complex())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        return type(self), (self._requires_grad,)


def _delegated(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = getattr(self.data, name)(*args, **kwargs)
        if not isinstance(self, UninitializedBuffer):
            return made
        return UninitializedBuffer(self._requires_grad, made.device, made.dtype, self.persistent)

    method.__name__ = name
    return method


for _name in ("half", "bfloat16", "float", "double", "char", "short", "int", "long", "cuda", "cpu", "to"):
    setattr(UninitializedTensorMixin, _name, _delegated(_name))


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet."""

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        """Without a shape; see ``materialize``."""
        return cls._made(requires_grad, device, dtype)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        """Nothing is left to do; see ``__new__``."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self._requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet."""

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        """Without a shape; see ``materialize``."""
        made = cls._made(requires_grad, device, dtype)
        made.persistent, made._is_buffer = persistent, True
        return made

    def __init__(
        self, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> None:
        """Nothing is left to do; see ``__new__``."""

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self._refuse()


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


def materialize_as(param: Any, shape: Any) -> None:
    """Give an uninitialized tensor its shape, outside of the graph."""
    with no_grad():
        param.materialize(shape)


for _kind in (UninitializedTensorMixin, UninitializedParameter, UninitializedBuffer):
    _kind.__module__ = "torch.nn.parameter"
