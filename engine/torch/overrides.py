"""``torch.overrides``: functions that other classes override, and modes that see every call."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, Self

from stridescope.engine.dispatch.parser import Function
from stridescope.engine.dispatch.torch_function import (
    Overrides,
    asked_mode,
    attribute_names,
    overriding,
    prepare,
    public_name,
    through,
    wrapped_attributes,
)
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._not_yet import attribute_of

_OURS, _FACADE = "stridescope.engine.", "stridescope.engine.torch."
# Functions of ``torch`` that are written in Python here and may be overridden; those that only make tensors, by modes.
IN_PYTHON = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod", "cdist",
    "chain_matmul", "einsum", "get_device", "is_complex", "is_conj", "is_distributed", "is_floating_point",
    "is_inference", "is_neg", "is_nonzero", "is_same_size", "is_signed", "istft", "lu", "meshgrid", "nonzero", "norm",
    "numel", "split", "stft", "tensordot", "unique", "unique_consecutive", "unravel_index", "as_tensor", "asarray",
    "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window", "tensor",
)  # fmt: skip
IN_FUNCTIONAL = frozenset(
    {"atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod", "cdist",
     "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "split", "stft", "tensordot", "unique",
     "unique_consecutive", "unravel_index"}
)  # fmt: skip
# Of nn.functional these are not.
NEVER = frozenset({"canonical_mask", "upsample", "upsample_bilinear", "upsample_nearest"})


class _Method:
    """The calls of functions while a mode is active."""

    called = staticmethod(Function.__call__)


def _called_in_mode(self: Function, *args: Any, **kwargs: Any) -> Any:
    name = str(sys._getframe(1).f_globals.get("__name__", ""))
    ours = name.startswith(_OURS) and not name.startswith(_FACADE)
    if ours or not Overrides.modes or Overrides.without_all:
        return _Method.called(self, *args, **kwargs)
    return asked_mode(self.public, overriding((*args, *kwargs.values())), args, kwargs or None)


def install() -> None:
    """Let functions that are written in Python ask handlers first; done when a script first has some."""
    for name, names in (("torch", IN_PYTHON), ("torch.nn.functional", None)):
        module = importlib.import_module(f"stridescope.engine.{name}")
        for public in names or [n for n in dir(module) if not n.startswith("_")]:
            found = getattr(module, public, None)
            if isinstance(found, types.FunctionType) and public not in NEVER:
                setattr(module, public, _asking(found, name))


def _asking(function: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    """``function``, unless a mode or a class does something else for it."""
    spell = functools.cache(lambda: inspect.signature(function))

    @functools.wraps(function)
    def asking(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if not has_torch_function(given):
            return function(*args, **kwargs)
        if namespace == "torch":
            return through(asking, function, args, kwargs)
        args, kwargs = _spelled(spell(), args, kwargs)
        return handle_torch_function(
            asking, [v for v in given if isinstance(v, Tensor) or overriding((v,))], *args, **kwargs
        )

    asking.namespace = "torch.functional" if function.__name__ in IN_FUNCTIONAL else namespace  # type: ignore[attr-defined]
    return asking


def _spelled(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as handlers of nn.functional get them: the required ones by place, the others by name."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    required = [n for n, p in signature.parameters.items() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    by_place = tuple(bound.arguments[name] for name in required)
    return by_place, {name: value for name, value in bound.arguments.items() if name not in required}


class TorchFunctionMode:
    """A block in which ``__torch_function__(func, types, args, kwargs)`` is asked for every call.

    Inside it the mode itself is not active: calling ``func(*args, **kwargs)`` does what the call would have done.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """What happens instead of the call; subclasses say what."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        prepare()
        if not Overrides.modes:
            _swap(True)
        Overrides.modes.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        Overrides.modes.pop()
        if not Overrides.modes:
            _swap(False)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """A mode of this class."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call be."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Do the call."""
        return func(*args, **(kwargs or {}))


def _swap(active: bool) -> None:
    """Let all calls of functions and methods ask the modes, or no longer."""
    wrapped = wrapped_attributes()
    plain = {name: value for value, name in attribute_names().items() if name in wrapped}
    for name, value in (wrapped if active else plain).items():
        setattr(Tensor, name, value)
    Function.__call__ = _called_in_mode if active else _Method.called  # type: ignore[method-assign]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of these (or a mode) overrides functions."""
    if Overrides.without_all:
        return False
    return bool(Overrides.modes) or bool(overriding(relevant_args))


def has_torch_function_unary(obj: Any) -> bool:
    """:func:`has_torch_function` of one argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """:func:`has_torch_function` of several arguments."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the modes and the classes of ``relevant_args`` make of a call of ``public_api``.

    Raises TypeError where every one of them returns NotImplemented.
    """
    relevant = list(relevant_args)
    found = [*overriding(relevant), *[value for value in relevant if type(value) is Tensor][:1]]
    if Overrides.modes and not Overrides.without_all:
        return asked_mode(public_api, found, args, kwargs)
    kinds = tuple(map(type, found))
    for item in found:
        answer = item.__torch_function__(public_api, kinds, args, kwargs)
        if answer is not NotImplemented:
            return answer
    name = public_name(public_api) or f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {list(kinds)}")


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function be overridden by the arguments that ``dispatcher`` names."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether this is a Tensor or overrides functions as one."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether this is a method of Tensor, or reads or writes one of its properties."""
    return func in attribute_names() or func.__name__ in ("__get__", "__set__", "__delete__")


def resolve_name(f: Any) -> str | None:
    """The name of a function as scripts write it, such as ``torch.Tensor.add``; None for others."""
    return public_name(f) or None


for _class in (TorchFunctionMode, BaseTorchFunctionMode):
    _class.__module__ = "torch.overrides"
__getattr__ = attribute_of("torch.overrides")
__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "handle_torch_function", "has_torch_function",
    "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property",
    "resolve_name", "wrap_torch_function",
]  # fmt: skip
