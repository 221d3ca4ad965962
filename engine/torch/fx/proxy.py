"""The stand-ins that symbolic tracing runs a program with: each thing done to one becomes a node."""

from __future__ import annotations

import dis
import enum
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from stridescope.engine.device import device
from stridescope.engine.dtype import dtype
from stridescope.engine.layout import layout, memory_format
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.fx.codegen import EXPRESSIONS, REFLECTED
from stridescope.engine.torch.fx.graph import Graph
from stridescope.engine.torch.fx.node import Node, map_aggregate

_NO_ITERATION = (
    "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
    "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types "
    "of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
)
PLAIN = (str, int, float, bool, complex, dtype, device, memory_format, layout, type(None), type(...), Tensor)


class TraceError(ValueError):
    """The program asked for a value, and there is none yet."""

    __module__ = "torch.fx.proxy"


class TracerBase:
    """What makes nodes and their stand-ins."""

    graph: Graph
    record_stack_traces = False
    trace_asserts = False
    proxy_buffer_attributes = False
    module_stack: dict[str, Any] = {}

    def create_node(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a node to the graph."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            from collections import OrderedDict

            node.meta["nn_module_stack"] = OrderedDict(self.module_stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """The stand-in for a node's value."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None, proxy_factory_fn: Callable[[Node], Any] | None = None,
    ) -> Any:  # fmt: skip
        """Add a node, and give the stand-in for its value."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        proxy = proxy_factory_fn(node) if proxy_factory_fn is not None else self.proxy(node)
        if self.record_stack_traces:
            node.stack_trace = user_stack()
        return proxy

    def create_arg(self, a: Any) -> Any:
        """A value as an argument of a node; raises NotImplementedError for what cannot be one."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            made = [self.create_arg(item) for item in a]
            return type(a)(*made) if hasattr(a, "_fields") else type(a)(made)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(item) for key, item in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, (*PLAIN, Node, enum.Enum)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        if isinstance(key, (Proxy, Node)):
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """What ``if proxy:`` asks."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """What ``for x in proxy:`` asks."""
        raise TraceError(_NO_ITERATION)

    def keys(self, obj: Proxy) -> Any:
        """What ``**proxy`` asks."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """The tracer of a stand-in that the user makes for a node of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


def user_stack() -> str:
    """The frames of the user's program that lead here, as a traceback writes them."""
    import traceback

    here = "stridescope"
    frames = [f for f in traceback.extract_stack() if here not in f.filename.replace("\\", "/") and f.line]
    return "".join(traceback.format_list(frames))


def has_proxy(values: Any) -> bool:
    """Whether a stand-in lies somewhere in these arguments."""
    found: list[Any] = []

    def look(leaf: Any) -> Any:
        if isinstance(leaf, Proxy):
            found.append(leaf)
        return leaf

    map_aggregate(values, look)
    return bool(found)


def first_proxy(values: Any) -> Proxy:
    """The first stand-in in these arguments."""
    found: list[Proxy] = []
    map_aggregate(values, lambda leaf: found.append(leaf) if isinstance(leaf, Proxy) else leaf)
    return found[0]


class Proxy:
    """The stand-in for the value of a node."""

    __module__ = "torch.fx.proxy"

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k.startswith("__") and k.endswith("__"):  # Python asks objects for these, and means no
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call of the value itself."""
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        count = _unpacked(sys._getframe(1))
        return self.tracer.iter(self) if count is None else (self[i] for i in range(count))

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please "
            "call torch.fx.wrap('len') at module scope"
        )

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def keys(self) -> Any:
        """What ``**proxy`` asks for."""
        return self.tracer.keys(self)

    __hash__ = object.__hash__

    def __getitem__(self, key: Any) -> Any:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, key), {})

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A function of PyTorch's was called with a stand-in."""
        tracer = first_proxy((args, kwargs or {})).tracer
        return tracer.create_proxy("call_function", func, args, kwargs or {})


class Attribute(Proxy):
    """An attribute of a stand-in: called it is a method, read it is a ``getattr``."""

    __module__ = "torch.fx.proxy"

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute, made when it is first needed."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        assert self._node is not None
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call of the method."""
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _unpacked(frame: FrameType) -> int | None:
    """How many names the running instruction unpacks an iterator into; None where it does something else."""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


def _operator(name: str, reflected: bool) -> Callable[..., Any]:
    target = getattr(operator, name)

    def method(*operands: Any) -> Any:
        ordered = operands[::-1] if reflected else operands
        return first_proxy(operands).tracer.create_proxy("call_function", target, ordered, {})

    return method


for _name in EXPRESSIONS:
    if _name != "getitem":
        setattr(Proxy, f"__{_name.rstrip('_')}__", _operator(_name, reflected=False))
    if _name in REFLECTED and _name != "getitem":
        setattr(Proxy, f"__r{_name.rstrip('_')}__", _operator(_name, reflected=True))
