"""A node of a graph: a call, an input, an attribute or the output, with the nodes that it reads and that read it."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stridescope.engine.torch.fx.immutable_collections import immutable_dict, immutable_list
from stridescope.engine.torch.fx.qualified import qualified_name, shown_target

if TYPE_CHECKING:
    from stridescope.engine.torch.fx.graph import Graph

OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_EFFECTS: set[Any] = set()


def has_side_effect(fn: Any) -> Any:
    """Mark a function whose calls stay in a graph though nobody reads what they give."""
    _EFFECTS.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """The same structure of tuples, lists, dicts and slices, with ``fn`` of each leaf."""
    if isinstance(a, tuple):
        mapped = tuple(map_aggregate(item, fn) for item in a)
        return type(a)(*mapped) if hasattr(a, "_fields") else mapped
    if isinstance(a, list):
        return immutable_list(map_aggregate(item, fn) for item in a)
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(item, fn)) for key, item in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """The same structure with ``fn`` of each node in it."""
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def shown_type(kind: Any) -> str:
    """A type as annotations write it."""
    if kind is None or kind is type(None):
        return "None"
    if typing.get_args(kind) or not isinstance(kind, type):
        return kind if isinstance(kind, str) else repr(kind).replace("stridescope.engine.torch", "torch")
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}".replace("stridescope.engine.torch", "torch")


def _shown(value: Any) -> str:
    """An argument in the text of a graph."""
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in value.items()) + "}"
    return str(value)


class Node:
    """One step of a graph.

    Attributes:
        op: ``placeholder``, ``get_attr``, ``call_function``, ``call_method``, ``call_module`` or ``output``.
        target: the function, or the name of the method, module, attribute or input.
        users: the nodes that read this one.
        meta: what passes note down.
    """

    __module__ = "torch.fx.node"

    def __init__(
        self, graph: Graph, name: str, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:  # fmt: skip
        if op not in OPS:
            raise AssertionError(f"op {op} is not a valid operation")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a "
                "Callable is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._assign(args, kwargs)

    def _assign(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Read from these arguments from now on."""
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def read(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args, self._kwargs = map_arg(args, read), map_arg(dict(kwargs), read)

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments, with nodes where the values of nodes go."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._assign(tuple(args), self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by keyword."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._assign(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that it reads, each once."""
        return list(self._input_nodes)

    @property
    def next(self) -> Node:
        """The node after it."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it."""
        return self._prev

    @property
    def stack_trace(self) -> str | None:
        """Where the user's program made the call, where the tracer wrote it down."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def update_arg(self, idx: int, arg: Any) -> None:
        """Change one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put one more positional argument before the others from ``idx`` on."""
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Change one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Read another node where it read ``old_input``."""

        def other(node: Node) -> Node:
            return new_input if node is old_input else node

        self._assign(map_arg(self.args, other), map_arg(self.kwargs, other))

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True, *,
        propagate_meta: bool = False,
    ) -> list[Node]:  # fmt: skip
        """Let all that read this node read another; gives those that were changed."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def prepend(self, x: Node) -> None:
        """Move another node of the graph to the place before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move another node of the graph to the place after this one."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it does more than compute what it gives."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            schema = getattr(self.target, "writes", False)
            return bool(schema) or self.target in _EFFECTS or qualified_name(self.target) == "torch._assert"
        return self.op == "call_module"

    def format_node(self, placeholder_names: list[str] | None = None, maybe_return_typename: Any = None) -> str | None:
        """The line of the node in the text of its graph."""
        kind = f"{shown_type(self.type)} " if self.type is not None else ""
        start = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names is not None and not isinstance(self.target, str):
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{start}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{start}[target={self.target}]"
        if self.op == "output":
            return f"return {self.args[0]}"
        args, kwargs = _shown(self.args), _shown(self.kwargs)
        return f"{start}[target={shown_target(self.target)}](args = {args}, kwargs = {kwargs})"

    def __repr__(self) -> str:
        return self.name

    def __lt__(self, other: Node) -> bool:
        order = list(self.graph.nodes)
        return order.index(self) < order.index(other)
