"""Making a trace: the function runs once, and every call that it makes of PyTorch is written down.

Python's own values (branches, loop counts, numbers asked of a tensor) are constants of a trace; sizes are followed.
"""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.events import journal
from stridescope.engine.tensor import Size, Tensor
from stridescope.engine.torch._ops import overload_of
from stridescope.engine.torch._watched_calls import watched
from stridescope.engine.torch.fx.graph import Graph
from stridescope.engine.torch.fx.graph_module import GraphModule
from stridescope.engine.torch.fx.node import Node, map_aggregate
from stridescope.engine.torch.jit.state import State
from stridescope.engine.torch.jit.traced_ints import TracedInt
from stridescope.engine.torch.nn.modules.module import Module


class TracerWarning(Warning):
    """What a trace may have got wrong."""

    __module__ = "torch.jit._trace"


_CONVERTED = (
    "Converting a tensor to a Python {} might cause the trace to be incorrect. We can't record the data flow of Python "
    "values, so this value will be treated as a constant in the future. This means that the trace might not generalize "
    "to other inputs!"
)
_KINDS = {
    "__bool__": "boolean", "is_nonzero": "boolean", "item": "number", "__float__": "float", "__int__": "integer",
    "__index__": "index", "tolist": "list",
}  # fmt: skip
_ITERATED = (
    "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different shape won't change "
    "the number of iterations executed (and might lead to errors or silently give incorrect results)."
)
_LENGTH = (
    "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would be tensor.shape[0]. "
    "Passing a tensor of different shape might lead to errors or silently give incorrect results."
)
_MADE = (
    "torch.{} results are registered as constants in the trace. You can safely ignore this warning if you use this "
    "function to create tensors out of constant variables that would be the same every time you call this function. In "
    "any other case, this might cause the trace to be incorrect."
)
_DICT = (
    "Encountering a dict at the output of the tracer might cause the trace to be incorrect, this is only valid if the "
    "container structure does not change based on the module's inputs. Consider using a constant container instead "
    "(e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and "
    "know the side effects, pass strict=False to trace() to allow this behavior."
)
_TOLD = frozenset(("dim", "numel", "stride", "is_contiguous", "is_floating_point", "is_complex", "ndimension", "type"))


def tracer_warning(text: str) -> None:
    """Warn at the line of the user's program that runs."""
    import sys

    from stridescope.engine.warn import is_ours

    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and is_ours(frame):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, TracerWarning, stacklevel=depth)


class Tracing:
    """A trace being made.

    Attributes:
        graph: the calls so far.
        root: the module whose parameters the trace reads.
    """

    def __init__(self, root: Module) -> None:
        self.graph, self.root, self.busy = Graph(), root, False
        self._nodes: dict[int, tuple[Tensor, Node]] = {}
        self._own = {id(t): name for name, t in (*root.named_parameters(), *root.named_buffers())}
        self._constants: dict[str, Tensor] = {}

    def note(self, tensor: Tensor, node: Node) -> None:
        """Remember the node that a tensor came from; the tensor lives as long as the trace."""
        self._nodes[id(tensor)] = (tensor, node)

    def node_of(self, tensor: Tensor) -> Node:
        """The node of a tensor; one that came from elsewhere is a constant."""
        if id(tensor) in self._nodes:
            return self._nodes[id(tensor)][1]
        name = self._own.get(id(tensor))
        if name is None:
            name = f"_tensor_constant{len(self._constants)}"
            self._constants[name] = tensor
        node = self.graph.get_attr(name)
        self.note(tensor, node)
        return node

    def _leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return self.node_of(leaf)
        return leaf.node if isinstance(leaf, TracedInt) else leaf

    def __call__(
        self, target: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], method: str = ""
    ) -> Any:
        """Do a call, and write it down."""
        if self.busy or method in _TOLD:
            return run(*args, **kwargs)
        if method == "size":
            return self._sizes(args[0])[args[1]] if len(args) > 1 else self._sizes(args[0])
        if method == "__iter__":
            tracer_warning(_ITERATED)
            return iter(self("unbind", lambda this: this.unbind(), args, {}, "unbind"))
        if (name := method or getattr(target, "__name__", "")) in _KINDS:
            tracer_warning(_CONVERTED.format(_KINDS[name]))
        elif name in ("numpy", "__array__"):
            tracer_warning(_CONVERTED.replace("Python {}", "NumPy array"))
        elif name in ("tensor", "as_tensor", "from_numpy"):
            tracer_warning(_MADE.format(name))
            return self._outside(run, args, kwargs)
        return self.record(target, run, args, kwargs, method)

    def _outside(self, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self.busy = True
        try:
            return run(*args, **kwargs)
        finally:
            self.busy = False

    def record(self, target: Any, run: Any, args: Any, kwargs: Any, method: str = "") -> Any:
        """Do a call and add its node, if tensors came of it."""
        before = {id(t): self.node_of(t) for t in _tensors((args, kwargs))}
        result = self._outside(run, args, kwargs)
        if not _tensors(result) and not (result is None and method == "__setitem__"):
            return result
        given, named = map_aggregate((args, kwargs), self._leaf)
        kind = "call_method" if isinstance(target, str) else "call_function"
        node = self.graph.create_node(kind, target, given, dict(named))
        self._results(result, node, before)
        return result

    def _results(self, result: Any, node: Node, before: dict[int, Node]) -> None:
        if isinstance(result, Tensor):
            self.note(result, node)
        elif isinstance(result, (tuple, list)):
            for place, item in enumerate(result):
                if isinstance(item, (Tensor, tuple, list)):
                    self._results(item, self.graph.call_function(operator.getitem, (node, place)), before)

    def _sizes(self, tensor: Tensor) -> Size:
        """The sizes of a tensor, followed."""
        node = self.node_of(tensor)
        sizes = tuple(tensor._array.shape)
        return Size(TracedInt.of(s, self.graph.call_method("size", (node, d))) for d, s in enumerate(sizes))

    def op(self, op: Op, call: Callable[..., Any], *args: Any) -> Any:
        """An op that no watched call made."""
        if self.busy:
            return call(*args)
        overload = overload_of(op)
        positional, named = overload.split(args)
        return self.record(overload, lambda *a, **k: op.call(*a, **k), positional, named)

    def module(self, result: Any, name: str) -> GraphModule:
        """The trace as a module that runs it."""
        self.graph.output(map_aggregate(result, self._leaf))
        self.graph.eliminate_dead_code(lambda node: not _is_size(node))
        values = {n.target: self._constants.get(n.target) for n in self.graph.nodes if n.op == "get_attr"}
        found = {key: value if value is not None else _reached(self.root, key) for key, value in values.items()}
        return GraphModule(found, self.graph, name)

    @contextlib.contextmanager
    def underway(self) -> Iterator[None]:
        """Write down what happens in the block."""
        kind: Any = Tensor
        usual_shape, usual_len = kind.shape, kind.__len__
        Interceptors.before.append(self.op)
        journal.require_full(1)
        State.tracing = self
        try:
            with watched(self):
                kind.shape = property(lambda t: usual_shape.__get__(t) if self.busy else self._sizes(t))
                kind.__len__ = lambda t: self._length(usual_len, t)
                yield
        finally:
            kind.shape, kind.__len__ = usual_shape, usual_len
            State.tracing = None
            journal.require_full(-1)
            Interceptors.before.remove(self.op)

    def _length(self, usual: Callable[[Tensor], int], tensor: Tensor) -> int:
        if not self.busy:
            tracer_warning(_LENGTH)
        return usual(tensor)


def _is_size(node: Node) -> bool:
    """Whether nothing is lost with a node that nobody reads: it follows a size, or takes one of several results."""
    if node.op == "call_method":
        return bool(node.target == "size")
    if node.op != "call_function" or getattr(node.target, "__module__", "") != "_operator":
        return False
    return node.target is operator.getitem or all(not isinstance(a, Node) or _is_size(a) for a in node.args)


def _reached(root: Any, name: str) -> Any:
    for part in name.split("."):
        root = getattr(root, part)
    return root


def _tensors(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    map_aggregate(values, lambda leaf: found.append(leaf) if isinstance(leaf, Tensor) else leaf)
    return found


def traced(function: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], strict: bool) -> GraphModule:
    """The trace of a function or module with these inputs; raises RuntimeError for an output that cannot be one."""
    root = function if isinstance(function, Module) else getattr(function, "__self__", None)
    tracing = Tracing(root if isinstance(root, Module) else Module())
    names = _input_names(function, len(inputs))
    for name, value in (*zip(names, inputs, strict=False), *kwargs.items()):
        _give(tracing, value, tracing.graph.placeholder(name))
    with tracing.underway():
        result = function(*inputs, **kwargs)
    if strict and isinstance(result, dict):
        raise RuntimeError(_DICT)
    if isinstance(result, list):
        result = list(result)
    return tracing.module(result, type(function).__name__ if isinstance(function, Module) else function.__name__)


def _give(tracing: Tracing, value: Any, node: Node) -> None:
    """An input, or what lies in one that is a tuple, a list or a dict."""
    if isinstance(value, Tensor):
        tracing.note(value, node)
    elif isinstance(value, (tuple, list, dict)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            _give(tracing, item, tracing.graph.call_function(operator.getitem, (node, key)))


def _input_names(function: Any, count: int) -> list[str]:
    import inspect

    called = function.forward if isinstance(function, Module) else function
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [*names, *(f"argument_{place}" for place in range(len(names), count))][:count]
