"""Watching every call of PyTorch's functions and of a tensor's methods, as the user's Python makes them.

What a graph of a program records are these calls, not the ops that they are made of. While nobody watches, no call
pays for it: the watch exchanges the functions' code, the methods of Tensor and ``Function.__call__`` for its time.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from stridescope.engine.dispatch.parser import Function
from stridescope.engine.ops import (
    flat_places,
    from_data,
    joining,
    linalg_lu,
    norms,
    products,
    removed,
    searching,
    selecting,
    spectral,
    views_shape,
    views_split,
    windows,
)
from stridescope.engine.tensor import Tensor

# Python's operators on tensors, by their method: the function of ``operator``, and whether the operands change places.
BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and", "or", "xor",
)  # fmt: skip
_WORDS = {"and": "and_", "or": "or_"}
OPERATORS: dict[str, tuple[Callable[..., Any], bool]] = {
    **{f"__{name}__": (getattr(operator, _WORDS.get(name, name)), False) for name in BINARY},
    **{f"__r{name}__": (getattr(operator, _WORDS.get(name, name)), True) for name in BINARY},
    **{f"__i{name}__": (getattr(operator, f"i{name}"), False) for name in BINARY},
    **{f"__{name}__": (getattr(operator, name), False) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{
        f"__{name}__": (getattr(operator, name), False)
        for name in ("neg", "pos", "abs", "invert", "getitem", "setitem")
    },
}  # fmt: skip
PLACE = 9_007_199_254_740_993  # where a trampoline's code keeps the watcher


class Watcher(Protocol):
    """Takes a call's place: ``run(*args, **kwargs)`` is the call itself.

    ``target`` is a function, or the name of a method; an operator comes as the function of ``operator``, its operands
    in the order in which they are written. ``method`` is the name of Tensor's method, where it is one.
    """

    def __call__(
        self, target: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], method: str = ""
    ) -> Any:
        """Do the call, or something else."""


def _trampoline(*args: Any, **kwargs: Any) -> Any:
    watcher: Any = 9_007_199_254_740_993
    return watcher(*args, **kwargs)


def _with_watcher(function: types.FunctionType, watcher: Callable[..., Any]) -> types.CodeType:
    """Code that calls the watcher, and fits where the function's own code stands."""
    code = _trampoline.__code__
    constants = tuple(watcher if constant == PLACE else constant for constant in code.co_consts)
    return code.replace(co_consts=constants, co_freevars=function.__code__.co_freevars, co_name=function.__name__)


def original(function: types.FunctionType) -> types.FunctionType:
    """The function with the code that it has now."""
    twin = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


@functools.cache
def python_functions() -> tuple[types.FunctionType, ...]:
    """The public functions of ``torch`` and ``torch.nn.functional`` that are written in Python."""
    import stridescope.engine.torch.nn.functional as functional
    from stridescope.engine.torch import functional as tensor_functions

    parts = (norms, searching, flat_places, products, linalg_lu, spectral, removed, views_split, views_shape, joining,
             selecting, windows)  # fmt: skip
    spaces = [*(part.FUNCTIONS for part in parts), vars(tensor_functions), vars(functional)]
    made = (from_data.tensor, from_data.as_tensor)
    found = [value for space in spaces for name, value in space.items() if not name.startswith("_")]
    functions = {id(f): f for f in (*found, *made) if isinstance(f, types.FunctionType)}
    return tuple(f for f in functions.values() if not f.__name__.startswith("_"))


def _methods() -> dict[str, Callable[..., Any]]:
    """What Tensor's class offers to call."""
    skipped = ("__new__", "__init__", "__del__", "__setattr__", "__getattr__", "__delattr__", "__hash__", "__class__")
    return {
        name: value
        for name, value in vars(Tensor).items()
        if callable(value) and not isinstance(value, type) and name not in skipped
        and (not name.startswith("_") or name in OPERATORS or name in VALUES)
    }  # fmt: skip


# Methods that give Python something of the tensor's elements.
VALUES = frozenset(
    ("__bool__", "__float__", "__int__", "__index__", "__complex__", "__array__", "__repr__", "__str__", "__format__",
     "__contains__", "__iter__", "__reduce_ex__", "__deepcopy__", "item", "tolist", "numpy", "is_nonzero", "data_ptr",
     "backward", "register_hook", "retain_grad")
)  # fmt: skip


# Properties that make another tensor of it.
PROPERTIES = ("T", "mT", "H", "mH", "real", "imag", "data")


def _watched_property(watcher: Watcher, name: str, usual: Any) -> property:
    def read(tensor: Tensor) -> Any:
        return watcher(getattr, lambda this, _: usual.__get__(this), (tensor, name), {}, "getattr")

    return property(read, usual.__set__, usual.__delete__)


def _watched_method(watcher: Watcher, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    target, swapped = OPERATORS.get(name, (name, False))

    def call(*args: Any, **kwargs: Any) -> Any:
        if not swapped:
            return watcher(target, method, args, kwargs, name)
        return watcher(target, lambda other, this: method(this, other), args[::-1], kwargs, name)

    return call


def _call_with(method: Callable[..., Any]) -> None:
    """What calling a function of PyTorch's does from now on."""
    kind: Any = Function
    kind.__call__ = method


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Let the watcher take every call's place inside the block."""
    usual = Function.__call__
    functions = python_functions()
    codes = [function.__code__ for function in functions]
    methods = _methods()
    properties = {name: vars(Tensor)[name] for name in PROPERTIES}

    def call(function: Function, /, *args: Any, **kwargs: Any) -> Any:
        return watcher(function, functools.partial(usual, function), args, kwargs)

    try:
        for function in functions:
            seen = functools.partial(_seen, watcher, function, original(function))
            function.__code__ = _with_watcher(function, seen)
        for name, method in methods.items():
            setattr(Tensor, name, _watched_method(watcher, name, method))
        for name, usual_property in properties.items():
            setattr(Tensor, name, _watched_property(watcher, name, usual_property))
        _call_with(call)
        yield
    finally:
        _call_with(usual)
        for name, method in (methods | properties).items():
            setattr(Tensor, name, method)
        for function, code in zip(functions, codes, strict=True):
            function.__code__ = code


def _seen(watcher: Watcher, function: Any, run: Any, /, *args: Any, **kwargs: Any) -> Any:
    return watcher(function, run, args, kwargs)
