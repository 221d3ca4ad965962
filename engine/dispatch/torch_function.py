"""The ``__torch_function__`` protocol: classes and modes that do something else when a function is called.

A class that has ``__torch_function__`` is asked whenever one of its objects is among the arguments of a function of
PyTorch or a method of Tensor; a mode is asked for every call inside its block. Nothing of it costs anything until a
script has such a class or enters a mode: methods of Tensor are wrapped then, on the subclass or for the mode's block,
and functions ask where an unusual type of argument leaves their short path anyway.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import is_ours

NO_HANDLER = (
    "Multiple dispatch failed for '{}'; all __torch_function__ handlers returned NotImplemented:\n\n{}\n\n"
    "For more information, try re-running with TORCH_LOGS=not_implemented"
)


HIDDEN = {"torch._C._nn": "torch.nn.functional"}  # where functions live, and where scripts find them


class Overrides:
    """What is overridden now: ``modes``, the innermost last, and how deep in blocks that switch parts of it off."""

    modes: list[Any] = []
    without_classes = 0  # in this many blocks no class is asked
    without_all = 0  # in this many blocks nothing is asked
    any_class = False  # whether a subclass of Tensor overrides anything
    any_dispatch = False  # whether one has a ``__torch_dispatch__``
    without_dispatch = 0  # in this many blocks no class is asked for that
    at_first_dispatch: list[Callable[[], object]] = []  # what is done when the first such class comes
    at_first: list[Callable[[], object]] = []  # what is done when the first class or mode comes


def disabled(func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The ``__torch_function__`` of classes that override nothing, such as Parameter."""
    return func(*args, **(kwargs or {}))


def overrides(kind: type) -> bool:
    """Whether objects of this class are to be asked."""
    handler = getattr(kind, "__torch_function__", None)
    return handler is not None and handler is not disabled and kind is not Tensor


@contextlib.contextmanager
def without(classes_only: bool) -> Iterator[None]:
    """Ask no class (and no mode, unless ``classes_only``) in this block."""
    name = "without_classes" if classes_only else "without_all"
    setattr(Overrides, name, getattr(Overrides, name) + 1)
    try:
        yield
    finally:
        setattr(Overrides, name, getattr(Overrides, name) - 1)


def overriding(values: Iterable[Any]) -> list[Any]:
    """The first argument of each class that is to be asked, subclasses before their bases; lists are looked into."""
    if Overrides.without_classes or Overrides.without_all:
        return []
    found: list[Any] = []
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            kind = type(item)
            if overrides(kind) and all(type(other) is not kind for other in found):
                before = (i for i, other in enumerate(found) if issubclass(kind, type(other)))
                found.insert(next(before, len(found)), item)
    return found


def answered(func: Any, found: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """What the first class that has an answer says; NotImplemented where none has."""
    kinds = tuple(map(type, found))
    for item in found:
        if type(item) is Tensor:
            continue
        answer = item.__torch_function__(func, kinds, args, kwargs)
        if answer is not NotImplemented:
            return answer
    return NotImplemented


def asked(func: Any, found: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """What the first class that has an answer says; raises TypeError where none has."""
    answer = answered(func, found, args, kwargs)
    if answer is NotImplemented:
        refusals = "\n".join(f"  - tensor subclass {type(item)}" for item in found)
        raise TypeError(NO_HANDLER.format(public_name(func), refusals))
    return answer


def asked_mode(func: Any, found: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """What the innermost mode says; it is no mode meanwhile."""
    mode = Overrides.modes.pop()
    if Overrides.modes or found:  # what the handler calls is still to ask them
        func = wrapped_attributes().get(attribute_names().get(func, ""), func)
    try:
        answer = mode.__torch_function__(func, tuple(map(type, found)), args, kwargs)
    finally:
        Overrides.modes.append(mode)
    if answer is NotImplemented:
        raise TypeError(
            f"no implementation found for '{public_name(func)}' on types that implement __torch_function__: []"
            f" nor was it found on the currently active mode {mode}"
        )
    return answer


def through(func: Any, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``original``, unless a mode or a class does something else for ``func``."""
    if Overrides.modes and not Overrides.without_all:
        return asked_mode(func, overriding((*args, *kwargs.values())), args, kwargs or None)
    if found := overriding((*args, *kwargs.values())):
        return asked(func, found, args, kwargs or None)
    return original(*args, **kwargs)


def prepare() -> None:
    """Do what is done when the first class or mode comes."""
    while Overrides.at_first:
        Overrides.at_first.pop()()


def public_name(func: Any) -> str:
    """The name by which a script calls it, such as ``torch.add`` or ``torch.Tensor.add``; empty where it has none."""
    func = getattr(func, "overridable", func)
    if (owner := getattr(func, "__self__", None)) in (known := attribute_names()):
        return f"torch.Tensor.{known[owner]}.{func.__name__}"
    if func in known:
        return f"torch.Tensor.{known[func]}"
    if not (module := str(getattr(func, "namespace", ""))):
        return ""
    name = func.__name__.removeprefix(f"{module.rpartition('.')[2]}_")  # torch.linalg.norm is linalg_norm
    return f"{HIDDEN.get(module, module)}.{name}"


@functools.cache
def attribute_names() -> dict[Any, str]:
    """The names of Tensor's methods and properties."""
    return {value: name for name, value in vars(Tensor).items() if callable(value) or hasattr(value, "__set__")}


# ---- methods of Tensor ---------------------------------------------------------------------------------------------

# Operators that are another method under PyTorch's hood: those handlers see.
ALIASES = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul",
    "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_", "__mod__": "remainder",
    "__imod__": "remainder_", "__ifloordiv__": "floor_divide_", "__matmul__": "matmul", "__neg__": "neg",
    "__pos__": "positive", "__abs__": "abs", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__ne__": "ne", "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
}  # fmt: skip
REFLECTED = (
    "__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rfloordiv__", "__rmod__", "__rpow__", "__rmatmul__",
    "__rand__", "__ror__", "__rxor__", "__rlshift__", "__rrshift__",
)  # fmt: skip
# What no handler is asked for.
PLAIN = frozenset(
    {"__new__", "__init__", "__init_subclass__", "__hash__", "__class__", "__dict__", "__weakref__", "__module__",
     "__doc__", "__slots__", "__iter__", "__torch_function__", "__torch_dispatch__", "as_subclass", "_make_subclass",
     "__getattr__", "__qualname__", "__annotations__", "__getstate__", "__setstate__", "__subclasshook__", "storage_",
     "layout_"}
)  # fmt: skip


@functools.cache
def wrapped_attributes() -> dict[str, Any]:
    """Every method and property of Tensor with handlers asked first, except when the engine itself uses it."""
    attribute_names()  # before any of them is wrapped
    made: dict[str, Any] = {}
    for name, value in vars(Tensor).items():
        if name in PLAIN or (name.startswith("_") and not name.startswith("__") and name not in ("_base", "_version")):
            continue
        if isinstance(value, property) or (hasattr(value, "__set__") and name == "dtype"):
            made[name] = _wrapped_property(value)
        elif callable(value) and not isinstance(value, type):
            # Some are lambdas, and handlers ask for the names; a function of this name is the public one, too.
            if isinstance(value, types.FunctionType) and value.__name__ != name:
                value.__name__, value.__qualname__ = name, f"Tensor.{name}"
            made[name] = _reflected(name, value) if name in REFLECTED else _wrapped_method(name, value)
    return made


def _by_engine() -> bool:
    """Whether the code that calls a wrapped method is the engine's."""
    return is_ours(sys._getframe(2))


def _wrapped_method(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    func = vars(Tensor)[ALIASES.get(name, name)]

    def method(*args: Any, **kwargs: Any) -> Any:
        if _by_engine():
            return original(*args, **kwargs)
        return through(func, original, args, kwargs)

    return _named(method, original)


def _reflected(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """``other OP self``: of two tensors it is the method of the left one, of a number and a tensor its own."""
    straight = f"__{name[3:]}"
    both, func = vars(Tensor)[ALIASES.get(straight, straight)], vars(Tensor)[ALIASES.get(name, name)]

    def method(self: Any, other: Any) -> Any:
        if _by_engine():
            return original(self, other)
        if isinstance(other, Tensor):
            return through(both, both, (other, self), {})
        return through(func, original, (self, other), {})

    return _named(method, original)


def _named(method: Any, original: Any) -> Callable[..., Any]:
    for name in ("__name__", "__qualname__", "__doc__"):
        with contextlib.suppress(AttributeError):
            setattr(method, name, getattr(original, name))
    method.overridable = original
    named: Callable[..., Any] = method
    return named


def _wrapped_property(original: Any) -> property:
    def read(self: Any) -> Any:
        if _by_engine():
            return original.__get__(self)
        return through(original.__get__, original.__get__, (self,), {})

    def write(self: Any, value: Any) -> None:
        if _by_engine():
            original.__set__(self, value)
        else:
            through(original.__set__, original.__set__, (self, value), {})

    return property(read, write, original.__delete__)


def begin_subclass(cls: type) -> None:
    """Let a new subclass of Tensor ask its ``__torch_function__``; what it defines itself stays as it is."""
    if "__torch_dispatch__" in vars(cls) and vars(cls)["__torch_dispatch__"] is not vars(Tensor)["__torch_dispatch__"]:
        Overrides.any_dispatch = True
        while Overrides.at_first_dispatch:
            Overrides.at_first_dispatch.pop()()
        if cls.__torch_function__.__func__ is torch_function:  # type: ignore[attr-defined]
            cls.__torch_function__ = disabled  # type: ignore[attr-defined]
    if not overrides(cls):
        return
    Overrides.any_class = True
    prepare()
    if any(overrides(base) for base in cls.__mro__[1:] if issubclass(base, Tensor)):
        return  # its base is wrapped
    for name, value in wrapped_attributes().items():
        if name not in vars(cls):
            setattr(cls, name, value)


def torch_dispatch(
    _cls: type, func: Callable[..., Any], _types: Sequence[type], args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """``Tensor.__torch_dispatch__``: call ``func`` as if no class had one."""
    Overrides.without_dispatch += 1
    try:
        return func(*args, **(kwargs or {}))
    finally:
        Overrides.without_dispatch -= 1


def dispatching(values: Iterable[Any]) -> list[Any]:
    """The first tensor of each class that has a ``__torch_dispatch__``, subclasses before their bases."""
    found: list[Any] = []
    for value in values:
        kind = type(value)
        if isinstance(value, Tensor) and dispatches(kind) and all(type(other) is not kind for other in found):
            before = (i for i, other in enumerate(found) if issubclass(kind, type(other)))
            found.insert(next(before, len(found)), value)
    return found


def dispatches(kind: type) -> bool:
    """Whether a class of tensors has a ``__torch_dispatch__`` of its own."""
    handler = getattr(kind, "__torch_dispatch__", None)
    return getattr(handler, "__func__", handler) not in (torch_dispatch, None)


def converted(func: Any, result: Any, cls: type) -> Any:
    """Results of a subclass's functions are of that subclass, too."""
    if func in unconverted():
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and not hasattr(result, "numel"):
        items: Any = [converted(None, item, cls) for item in result]
        return type(result)(items)
    return result


def unconverted() -> Iterable[Any]:
    """The functions whose results stay what they are."""
    return [vars(Tensor)["_base"].__get__, vars(Tensor)["grad"].__get__]


def torch_function(
    cls: type, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """``Tensor.__torch_function__``: call ``func`` and give its results this class."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with without(classes_only=True):
        return converted(func, func(*args, **(kwargs or {})), cls)
