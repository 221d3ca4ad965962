"""Symbolic tracing: a module's ``forward`` is run with stand-ins for its inputs, and what it does becomes a graph."""

from __future__ import annotations

import builtins
import contextlib
import inspect
import math
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._watched_calls import watched
from stridescope.engine.torch.fx.graph import Graph
from stridescope.engine.torch.fx.graph_module import GraphModule
from stridescope.engine.torch.fx.node import Node
from stridescope.engine.torch.fx.normalized import as_handed_on, method_name
from stridescope.engine.torch.fx.proxy import Proxy, TracerBase, has_proxy
from stridescope.engine.torch.nn.modules.container import Sequential
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.parameter import Parameter
from stridescope.engine.warn import warn

# What ``wrap`` was told: the globals of a module, and the name in them.
_WRAPPED: dict[tuple[int, str], dict[str, Any]] = {}


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Let calls of a function of the calling module become nodes instead of being traced through.

    Raises:
        RuntimeError: it is neither a function nor a name.
        NotImplementedError: it is called inside a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _WRAPPED[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _assert_is_none(value: Any, msg: str) -> None:
    """What a graph checks that was made for None."""
    assert value is None, msg


_assert_is_none.__module__ = "torch.fx._symbolic_trace"


def is_fx_tracing() -> bool:
    """Whether symbolic tracing is underway."""
    return Tracer.underway > 0


class Tracer(TracerBase):
    """Makes graphs of modules and functions; a subclass says which modules stay whole.

    Attributes:
        root: the module being traced.
        graph: what has been made so far.
    """

    __module__ = "torch.fx._symbolic_trace"
    underway = 0

    def __init__(
        self, autowrap_modules: tuple[ModuleType, ...] = (math,), autowrap_functions: tuple[Any, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:  # fmt: skip
        self.autowrap_modules, self.autowrap_functions = autowrap_modules, autowrap_functions
        self.param_shapes_constant = param_shapes_constant
        self.root: Module = Module()
        self.module_stack: dict[str, Any] = {}
        self.tensor_attrs: dict[int, str] = {}
        self._kept: list[Any] = []
        self._attributes: dict[str, Proxy] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of a module stay one node: those of ``torch.nn`` do, but a Sequential is looked into."""
        return type(m).__module__.startswith("torch.nn") and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The dotted name of a module in the root; raises NameError for one that is not in it."""
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call of a module does: one node for a leaf, else whatever its ``forward`` does."""
        name = self.path_of_module(m)
        before = dict(self.module_stack)
        self.module_stack[name] = (name, type(m))
        try:
            if not self.is_leaf_module(m, name):
                return forward(*args, **kwargs)
            return self.create_proxy("call_module", name, args, kwargs)
        finally:
            self.module_stack = before

    def create_arg(self, a: Any) -> Any:
        """A value as an argument of a node; the root's own tensors are read from it, others are kept in it."""
        if isinstance(a, Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
            return self.create_node("get_attr", self._constant(a), (), {})
        if isinstance(a, Module):
            for name, module in self.root.named_modules():
                if a is module:
                    return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _constant(self, tensor: Tensor) -> str:
        """The name under which the root keeps a tensor that the program made."""
        name = self.tensor_attrs.get(id(tensor))
        if name is None:
            number = 0
            while hasattr(self.root, f"_tensor_constant{number}"):
                number += 1
            name = self.tensor_attrs[id(tensor)] = f"_tensor_constant{number}"
            setattr(self.root, name, tensor)
        return name

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What reading an attribute of a module gives: a stand-in for a parameter."""
        if not isinstance(attr_val, Parameter):
            return attr_val
        for name, parameter in self.root.named_parameters():
            if parameter is attr_val:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                return parameter_proxy_cache[name]
        return attr_val

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or a function; ``concrete_args`` are inputs whose values are known.

        Raises:
            TraceError: the program asks an input for its value.
        """
        function: Any
        if isinstance(root, Module):
            self.root, function = root, type(root).forward
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self._attributes = {}
        args = _Inputs(self, function, isinstance(root, Module), concrete_args or {})
        Tracer.underway += 1
        try:
            with _traced(self, function):
                result = args.call()
                said = None if args.patched else getattr(function, "__annotations__", {}).get("return")
                kind = _resolved(said, function)
                self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=kind)
        finally:
            Tracer.underway -= 1
        return self.graph


def _resolved(annotation: Any, function: Any) -> Any:
    """An annotation that ``from __future__ import annotations`` left as text, as what it says."""
    if annotation == "Any" and str(getattr(function, "__globals__", {}).get("__name__")).startswith("stridescope."):
        return None  # PyTorch's own modules say nothing there
    if isinstance(annotation, str):
        with contextlib.suppress(Exception):
            return eval(annotation, dict(vars(builtins)), getattr(function, "__globals__", {}))
        return None
    return annotation


_STARRED: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class _Inputs:
    """The arguments that a function is traced with: a stand-in for each parameter that is not known."""

    def __init__(self, tracer: Tracer, function: Any, bound: bool, known: dict[str, Any]) -> None:
        self.tracer, self.function, self.known = tracer, function, known
        parameters = list(inspect.signature(function).parameters.values())
        own = parameters[1:] if bound else parameters
        starred = [p for p in own if p.kind in _STARRED]
        self.patched = bool(starred) or any(p.kind is p.KEYWORD_ONLY for p in own)
        self.values: list[Any] = [tracer.root] if bound else []
        self.values += [self._one(p) for p in own if p.kind not in _STARRED]
        self.values += [self._placeholder(_STARRED[p.kind] + p.name, p) for p in starred]

    def call(self) -> Any:
        """Run the function; what it would gather in a tuple or a dict is a stand-in too."""
        if not self.patched:
            return self.function(*self.values)
        code = self.function.__code__
        flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        code = code.replace(co_flags=flags, co_argcount=len(self.values), co_kwonlyargcount=0, co_posonlyargcount=0)
        function = self.function
        return FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)(*self.values)

    def _one(self, parameter: inspect.Parameter) -> Any:
        if parameter.name not in self.known:
            return self._placeholder(parameter.name, parameter)
        value = self.known[parameter.name]
        number = list(self.known).index(parameter.name) + 1
        stand_in = self._placeholder(f"{parameter.name}_{number}", parameter)
        said = f"{parameter.name} has been specialized to have value {value} but got another value"
        if isinstance(value, (bool, int, float, str)):
            import stridescope.engine.torch as torch

            self.tracer.create_proxy("call_function", torch._assert, (stand_in == value, said), {})
        elif value is None:
            self.tracer.create_proxy("call_function", _assert_is_none, (stand_in, said), {})
        else:
            warn(
                f"Was not able to add assertion to guarantee correct input {parameter.name} to specialized function. "
                "It is up to the user to make sure that your inputs match the inputs you specialized the function with."
            )
        return value

    def _placeholder(self, target: str, parameter: inspect.Parameter) -> Any:
        default = () if parameter.default is parameter.empty else (parameter.default,)
        kind = None if parameter.annotation is parameter.empty else _resolved(parameter.annotation, self.function)
        return self.tracer.create_proxy("placeholder", target, default, {}, type_expr=kind)


@contextlib.contextmanager
def _traced(tracer: Tracer, function: Any) -> Iterator[None]:
    """Let modules, PyTorch's functions and wrapped functions make nodes while the tracer runs a program."""
    kind: Any = Module
    usual_call, usual_getattr = kind.__call__, kind.__getattr__

    def call(module: Module, /, *args: Any, **kwargs: Any) -> Any:
        _wrap_in(patches, tracer, getattr(type(module).forward, "__globals__", {}))
        return tracer.call_module(module, lambda *a, **k: usual_call(module, *a, **k), args, kwargs)

    def get(module: Module, name: str) -> Any:
        return tracer.getattr(name, usual_getattr(module, name), tracer._attributes)

    def watch(target: Any, run: Any, args: tuple[Any, ...], kwargs: dict[str, Any], method: str = "") -> Any:
        if not has_proxy((args, kwargs)):
            return run(*args, **kwargs)
        if method:
            return tracer.create_proxy("call_method", method_name(method), args, kwargs)
        args, kwargs = as_handed_on(target, args, kwargs)
        return tracer.create_proxy("call_function", target, args, kwargs)

    with contextlib.ExitStack() as patches, watched(watch):
        kind.__call__, kind.__getattr__ = call, get
        try:
            _wrap_in(patches, tracer, getattr(function, "__globals__", {}))
            for module in tracer.autowrap_modules:
                _wrap_in(patches, tracer, vars(module))
            for (_, name), names in list(_WRAPPED.items()):
                _exchange(patches, names, name, _recording(tracer, names.get(name, getattr(builtins, name, None))))
            yield
        finally:
            kind.__call__, kind.__getattr__ = usual_call, usual_getattr


def _wrap_in(patches: contextlib.ExitStack, tracer: Tracer, names: dict[str, Any]) -> None:
    """Exchange the functions that the tracer wraps by itself where a module's globals name them."""
    own = {
        id(value)
        for module in tracer.autowrap_modules
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_")
    } | {id(function) for function in tracer.autowrap_functions}
    for name, value in list(names.items()):
        if id(value) in own and not name.startswith("_"):
            _exchange(patches, names, name, _recording(tracer, value))


def _exchange(patches: contextlib.ExitStack, names: dict[str, Any], name: str, value: Any) -> None:
    had, usual = name in names, names.get(name)

    def restore() -> None:
        if had:
            names[name] = usual
        else:
            del names[name]

    names[name] = value
    patches.callback(restore)


def _recording(tracer: Tracer, function: Any) -> Callable[..., Any]:
    """The function, but a call with a stand-in becomes a node."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if not has_proxy((args, kwargs)):
            return function(*args, **kwargs)
        made = tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return call


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Trace a module or a function into a GraphModule; see :class:`Tracer`."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


__all__ = ["Node", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]
