"""A graph: a list of nodes in the order in which they are computed."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

from stridescope.engine.torch.fx.codegen import PythonCode, python_code
from stridescope.engine.torch.fx.namespace import Namespace, snake_case
from stridescope.engine.torch.fx.node import Node, map_arg
from stridescope.engine.torch.fx.qualified import plain_name
from stridescope.engine.torch.fx.table import table


class _node_list:
    """The nodes in order; what is inserted meanwhile is seen, what is erased is not."""

    __module__ = "torch.fx.graph"

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node: Node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> Iterator[Node]:
        return iter(_node_list(self.graph, "_next" if self.direction == "_prev" else "_prev"))


class Graph:
    """Nodes in the order of computation, from the placeholders to the output.

    Raises:
        RuntimeError: a node is erased that others read, or :meth:`lint` finds a fault.
    """

    __module__ = "torch.fx.graph"

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert_before: Node = self._root
        self._graph_namespace = Namespace()
        self.owning_module, self._tracer_cls, self._tracer_extras = owning_module, tracer_cls, tracer_extras
        self._codegen: Any = None
        self.transformers: list[Callable[[list[str]], list[str]]] = []

    @property
    def nodes(self) -> _node_list:
        """All nodes in order."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The node that says what the graph gives."""
        node = next(reversed(self.nodes))
        assert node.op == "output"
        return node

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes with this op, and this target where one is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def create_node(
        self, op: str, target: Any, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None,
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a node at the insertion point."""
        if op == "root":
            raise AssertionError("op root is not a valid operation")
        candidate = name if name is not None else _name_of(target)
        node = Node(self, self._graph_namespace.create_name(candidate), op, target, args or (), kwargs or {}, type_expr)
        self._insert_before.prepend(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add the reading of an attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Add a call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Any, args: Any = None, kwargs: Any = None, type_expr: Any = None, name: str | None = None
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Say what the graph gives."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    @contextlib.contextmanager
    def _inserting(self, before: Node) -> Iterator[None]:
        usual, self._insert_before = self._insert_before, before
        try:
            yield
        finally:
            self._insert_before = usual

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """New nodes stand before this one inside the block, or before all."""
        if n is None:
            return self._inserting(self._root.next)
        self._own(n)
        return _moved(self, n, after=False)

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """New nodes stand after this one inside the block, or after all."""
        if n is None:
            return self._inserting(self._root)
        self._own(n)
        return _moved(self, n, after=True)

    def _own(self, n: Node) -> None:
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")

    def erase_node(self, to_erase: Node) -> None:
        """Take a node away; raises RuntimeError while others read it."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        to_erase._assign((), {})

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Add a copy of a node of another graph; ``arg_transform`` gives this graph's node for each that it reads."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False) -> Any:
        """Add copies of all nodes of a graph; gives what its output would be here."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        seen: dict[Node, Any] = {}
        result = made.graph_copy(self, seen)
        last = next(reversed(self.nodes), None)
        if last is not None and last.op == "output":
            made.output(result, type_expr=last.type).meta = copy.copy(last.meta)
        return made

    def python_code(self, root_module: str = "self", **options: Any) -> PythonCode:
        """The graph as the source of a ``forward``."""
        return python_code(self, root_module, **options)

    def on_generate_code(self, make_transformer: Any) -> contextlib.AbstractContextManager[None]:
        """Let a function change the lines of the generated code, until the block that this may open ends."""
        before = list(self.transformers)
        self.transformers = [make_transformer(before[-1] if before else None)]

        @contextlib.contextmanager
        def until_here() -> Iterator[None]:
            try:
                yield
            finally:
                self.transformers = before

        return until_here()

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(table(rows, ["opcode", "name", "target", "args", "kwargs"]))

    def lint(self) -> None:
        """Check that nodes come before those that read them, and that what they name exists."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            for arg in node._input_nodes:
                self._check_argument(arg, node, seen)
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                _check_target(node, self.owning_module)

    def _check_argument(self, arg: Node, node: Node, seen: set[Node]) -> None:
        if arg.graph is not self:
            raise RuntimeError(
                f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an argument! If "
                f"you are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to "
                f"remap values\n{self}"
            )
        if arg not in seen:
            raise RuntimeError(
                f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that Nodes in "
                f"the graph are topologically ordered\n{self}"
            )

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take away the nodes that nobody reads; gives whether there were any."""
        self.lint()
        changed = False
        for node in list(reversed(self.nodes)):
            impure = is_impure_node(node) if is_impure_node is not None else node.is_impure()
            if not impure and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return "graph():" + "".join(f"\n    {line}" for line in lines if line)


@contextlib.contextmanager
def _moved(graph: Graph, anchor: Node, after: bool) -> Iterator[None]:
    """New nodes stand next to the anchor; behind it they keep their own order."""
    usual, graph._insert_before = graph._insert_before, anchor.next if after else anchor
    try:
        yield
    finally:
        graph._insert_before = usual


def _name_of(target: Any) -> str:
    if callable(target):
        return snake_case(plain_name(target))
    name = target[2:-2] if target.startswith("__") and target.endswith("__") and len(target) > 4 else target
    return snake_case(name)


def _check_target(node: Node, module: Any) -> None:
    """Whether what a node reads or calls by name is there; raises RuntimeError."""
    if node.op not in ("get_attr", "call_module"):
        return
    parts = node.target.split(".")
    for place, part in enumerate(parts):
        below = getattr(module, part, None)
        if below is None:
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {part} of {'.'.join(parts[:place])}"
            )
        module = below
