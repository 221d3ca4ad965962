"""Running a graph node by node, and making another graph of it on the way."""

from __future__ import annotations

from typing import Any

from stridescope.engine.torch.fx.graph import Graph
from stridescope.engine.torch.fx.graph_module import GraphModule
from stridescope.engine.torch.fx.node import Node, map_aggregate, map_arg
from stridescope.engine.torch.fx.proxy import Proxy, TracerBase
from stridescope.engine.torch.nn.modules.module import Module

_ADVICE = (
    "Use tlparse to see full graph. (https://github.com/pytorch/tlparse?tab=readme-ov-file"
    "#tlparse-parse-structured-pt2-logs)"
)


class Interpreter:
    """Runs the graph of a module; a subclass says what each kind of node does.

    Attributes:
        env: by node, the value that it gave.
    """

    __module__ = "torch.fx.interpreter"

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module: Any = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else self.module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Any = iter(())

    def _last_uses(self) -> dict[Node, list[Node]]:
        seen: set[Node] = set()
        last: dict[Node, list[Node]] = {}
        for user in reversed(self.graph.nodes):
            for node in user.all_input_nodes:
                if node not in seen:
                    seen.add(node)
                    last.setdefault(user, []).append(node)
        return last

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the graph; an error says at which node it arose."""
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        last = self._last_uses() if self.garbage_collect_values else {}
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    _say_node(error, node)
                raise
            for done in last.get(node, ()):
                del self.env[done]
            if node.op == "output":
                return self.env[node]
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph with the arguments of a list, which is emptied."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """What a node gives."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument; ``*args`` takes all that are left."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function gives."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the method of the first argument gives."""
        this, *others = args
        return getattr(this, target)(*others, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the submodule gives."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph gives."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of a dotted name; raises RuntimeError where there is none."""
        value: Any = self.module
        parts = target.split(".")
        for place, part in enumerate(parts):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: place + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """A node's arguments with the values that other nodes gave."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """The same structure with the values of its nodes."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


def _say_node(error: Exception, node: Node) -> None:
    """Add to an error's text the node at which it arose."""
    said = f"While executing {node.format_node()}"
    text = f"{error.args[0]}\n\n{said}" if error.args else said
    text += f"\nOriginal traceback:\n{node.stack_trace}\n{_ADVICE}"
    if isinstance(error, KeyError):
        error.args = (text,)
    else:
        error.args = (text, *error.args[1:])


class _TransformerTracer(TracerBase):
    """Makes the nodes of the new graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.tensor_attrs: dict[Any, str] = {}


class Transformer(Interpreter):
    """An interpreter whose values are stand-ins: what its methods do to them becomes a new graph."""

    __module__ = "torch.fx.interpreter"

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module  # type: ignore[attr-defined]

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An input of the new graph."""
        return Proxy(self.new_graph.placeholder(target, default_value=args[0] if args else ...), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute read by the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a method in the new graph."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a submodule in the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Run the graph, and give the new one with the old module's parts."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            made = map_aggregate(result, lambda leaf: leaf.node if isinstance(leaf, Proxy) else leaf)
            self.new_graph.output(made)
        for old, new in zip(self.graph.nodes, self.new_graph.nodes, strict=False):
            if old.op == "placeholder":
                new.type = old.type
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
