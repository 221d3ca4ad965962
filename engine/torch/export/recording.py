"""Writing down the ops that a module runs, each as ``torch.ops.aten`` has it; ops made of others stay whole."""

from __future__ import annotations

import contextlib
import operator
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.events import journal
from stridescope.engine.tensor import Tensor, alias
from stridescope.engine.torch._ops import overload_of
from stridescope.engine.torch._watched_calls import VALUES, watched
from stridescope.engine.torch.export.errors import GuardOnDataDependentSymNode
from stridescope.engine.torch.fx.graph import Graph
from stridescope.engine.torch.fx.namespace import snake_case
from stridescope.engine.torch.fx.node import Node, map_aggregate

_TO_THE_END = 9223372036854775807
_HARMLESS = ("__repr__", "__str__", "__format__", "data_ptr", "__reduce_ex__", "__deepcopy__", "register_hook",
             "retain_grad", "backward", "__iter__", "__contains__")  # fmt: skip


class Recording:
    """The ops of one run.

    Attributes:
        graph: their nodes.
        constants: tensors that were neither inputs nor the module's, by the name of their node.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.constants: dict[str, Tensor] = {}
        self.depth = 0
        self._nodes: dict[int, tuple[Tensor, Node]] = {}
        self._last_input: Node | None = None

    def input(self, name: str, tensor: Any) -> Node:
        """Add a placeholder for a tensor, or for another value."""
        node = self.graph.placeholder(name)
        node.name = name
        if isinstance(tensor, Tensor):
            self._note(tensor, node)
        self._last_input = node
        return node

    def _note(self, tensor: Tensor, node: Node) -> None:
        self._nodes[id(tensor)] = (tensor, node)
        node.meta["val"] = tensor

    def leaf(self, leaf: Any) -> Any:
        """A value as an argument of a node."""
        if not isinstance(leaf, Tensor):
            return leaf
        if id(leaf) not in self._nodes:
            name = f"c_lifted_tensor_{len(self.constants)}"
            self.constants[name] = leaf
            first = next(iter(self.graph.nodes), None)
            with self.graph.inserting_before(first) if first is not None else contextlib.nullcontext():
                node = self.graph.placeholder(name)
            self._note(leaf, node)
        return self._nodes[id(leaf)][1]

    def __call__(self, op: Op, call: Callable[..., Any], *args: Any) -> Any:
        """Run an op, and write it down unless it is part of another."""
        if self.depth:
            return call(*args)
        self.depth += 1
        try:
            result = call(*args)
        finally:
            self.depth -= 1
        overload = overload_of(op)
        positional, named = overload.split(args)
        if not op.schema.writes and any(result is a for a in args):  # such as dropout that does nothing
            result = alias(result)
        given, keywords = map_aggregate((positional, named), self.leaf)
        node = self.graph.call_function(overload, given, dict(keywords), name=snake_case(op.name))
        node.meta["stack_trace"] = _stack()
        self._results(result, node)
        return result

    def _results(self, result: Any, node: Node) -> None:
        if isinstance(result, Tensor):
            self._note(result, node)
        elif isinstance(result, (tuple, list)):
            for place, item in enumerate(result):
                if isinstance(item, Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    part.meta["stack_trace"] = node.meta["stack_trace"]
                    self._note(item, part)

    def watch(
        self, target: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], method: str = ""
    ) -> Any:
        """Refuse what asks a tensor for its elements: the graph would be right for these inputs only."""
        asks = method in VALUES and method not in _HARMLESS
        if asks and not self.depth and any(isinstance(a, Tensor) for a in args):
            raise GuardOnDataDependentSymNode(_asked(method))
        return run(*args, **kwargs)

    @contextlib.contextmanager
    def underway(self) -> Iterator[None]:
        """Write down what happens in the block."""
        Interceptors.before.append(self)
        journal.require_full(1)
        try:
            with watched(self.watch), no_grad():
                yield
        finally:
            journal.require_full(-1)
            Interceptors.before.remove(self)


def _asked(method: str) -> str:
    expression = "Eq(u0, 1)" if method in ("__bool__", "is_nonzero") else "u0" if method != "__float__" else "zuf0"
    return (
        f"Could not guard on data-dependent expression {expression} (unhinted: {expression}).  (Size-like symbols: "
        "none)\n\nconsider using data-dependent friendly APIs such as guard_or_false, guard_or_true and "
        "statically_known_true."
    )


def _stack() -> str | None:
    """The innermost line of the user's program that runs."""
    here = [f for f in traceback.extract_stack() if "stridescope" not in f.filename.replace("\\", "/") and f.line]
    return "".join(traceback.format_list(here[-1:])) if here else None
