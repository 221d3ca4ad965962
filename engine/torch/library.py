"""``torch.library``: ops of one's own, with kernels in Python, a shape function and a derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stridescope.engine.torch._custom_ops import ANY, CustomOverload, declare, find
from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torch._signatures import infer_schema

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "impl", "infer_schema", "register_autograd", "register_fake",
    "register_kernel",
]  # fmt: skip
_COMPOSITE = ("CompositeImplicitAutograd",)
_EVERYWHERE = ("", "default", "CompositeExplicitAutograd", "DefaultBackend")


class CustomOpDef:
    """A function that is an op: call it, or ``torch.ops.mylib.f``."""

    __module__ = "torch._library.custom_ops"

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any]) -> None:
        self._namespace, self._name, self._init_fn = namespace, name, fn
        self._qualname = f"{namespace}::{name}"
        self._opoverload: CustomOverload = declare(namespace, name + schema, again=True)
        self._opoverload.checks_aliases = True
        self.__doc__, self.__name__ = fn.__doc__, getattr(fn, "__name__", name)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op."""
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Give the op another kernel for these devices: "cuda", a list of them, or None for all; also a decorator."""
        return _registered(self._opoverload, device_types, fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Say what a call gives for tensors on meta: shapes, dtypes and devices."""
        self._opoverload.kernels["meta"] = fn
        return fn

    def register_autograd(self, backward: Any, /, *, setup_context: Any = None) -> None:
        """Give the op a derivative: ``setup_context(ctx, inputs, output)`` saves, ``backward(ctx, *grads)`` returns."""
        self._opoverload.backward, self._opoverload.setup_context = backward, setup_context


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make a function an op named ``mylib::f``; without ``fn``, a decorator.

    The schema is read from the annotations unless it is given. Raises ValueError for a name without namespace.
    """
    namespace, _, short = name.partition("::")
    if not short or not namespace:
        raise ValueError(f"{name} should be a qualified name, in the form {{namespace}}::{{name}}")

    def made(function: Callable[..., Any]) -> CustomOpDef:
        line = schema if schema is not None else infer_schema(function, mutates_args=mutates_args)
        op = CustomOpDef(namespace, short, line, function)
        _registered(op._opoverload, device_types, function)
        return op

    return made if fn is None else made(fn)


def _registered(op: CustomOverload, device_types: Any, fn: Callable[..., Any] | None) -> Any:
    kinds = [ANY] if device_types is None else [device_types] if isinstance(device_types, str) else list(device_types)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        op.kernels.update(dict.fromkeys(kinds, function))
        return function

    return register if fn is None else register(fn)


def _op(op: Any) -> CustomOverload:
    return op if isinstance(op, CustomOverload) else op._opoverload if isinstance(op, CustomOpDef) else find(op)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Give an op, or the one of this name, a kernel for some devices; without ``func``, a decorator."""
    return _registered(_op(op), device_types, func)


def register_fake(op: Any, func: Any = None, /, *, lib: Any = None, _stacklevel: int = 1, **_: Any) -> Any:
    """Say what an op gives for tensors on meta; without ``func``, a decorator."""
    return _registered(_op(op), "meta", func)


def register_autograd(op: Any, backward: Any, /, *, setup_context: Any = None, lib: Any = None) -> None:
    """Give an op a derivative: see :meth:`CustomOpDef.register_autograd`."""
    found = _op(op)
    found.backward, found.setup_context = backward, setup_context


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Make an op with this schema, such as ``"(Tensor x) -> Tensor"``; its kernels come with :func:`impl`."""
    namespace, _, name = qualname.partition("::")
    declare(namespace, name + schema)


def impl(qualname: str, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Give an op a kernel for device types, or for all with "default"; without ``func``, a decorator."""
    return _registered(find(qualname), None if types in _EVERYWHERE else types, func)


class Library:
    """A namespace of ops that is written in one place: ``DEF`` makes it, ``FRAGMENT`` adds, ``IMPL`` gives kernels."""

    __module__ = "torch.library"

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Make an op, such as ``"f(Tensor x) -> Tensor"``; returns its name."""
        made = declare(self.ns, schema)
        return made.name()

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", **_: Any) -> None:
        """Give an op its function for a dispatch key: "CPU", "CUDA", "Meta", "CompositeImplicitAutograd"."""
        key = dispatch_key or self.dispatch_key
        name = op_name if isinstance(op_name, str) else op_name.name()
        op = find(name if "::" in name else f"{self.ns}::{name}")
        if key in _COMPOSITE or not key:
            op.composite = fn
        elif key.startswith("Autograd"):
            raise NotImplementedError(f"torch.library.Library.impl for {key} is not in Stridescope yet")
        else:
            op.kernels[ANY if key in _EVERYWHERE else key.lower()] = fn


__getattr__ = attribute_of("torch.library")
