"""The source of a graph's ``forward``."""

from __future__ import annotations

import builtins
import enum
import math
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stridescope.engine.device import device
from stridescope.engine.tensor import Size
from stridescope.engine.torch.fx.namespace import Namespace
from stridescope.engine.torch.fx.node import Node, map_arg, shown_type
from stridescope.engine.torch.fx.qualified import is_of_torch, qualified_name

if TYPE_CHECKING:
    from stridescope.engine.torch.fx.graph import Graph

_TWO = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**", "lshift": "<<",
    "rshift": ">>", "and_": "&", "or_": "|", "xor": "^", "matmul": "@",
}  # fmt: skip
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
REFLECTED = (*_TWO, "getitem")
EXPRESSIONS = {
    **{name: f"{{}} {sign} {{}}" for name, sign in {**_TWO, **_COMPARED}.items()},
    "getitem": "{}[{}]", "pos": "+{}", "neg": "-{}", "invert": "~{}",
}  # fmt: skip
STATEMENTS = {
    **{f"i{name.rstrip('_')}": f"{{}} {sign}= {{}}" for name, sign in _TWO.items()},
    "setitem": "{}[{}] = {}",
}  # fmt: skip


@dataclass
class PythonCode:
    """The source, and the objects that it names beside builtins and ``torch``."""

    src: str
    globals: dict[str, Any]


@dataclass
class _Writer:
    """One graph being written."""

    root: str
    namespace: Namespace
    verbose: bool = False
    globals: dict[str, Any] = field(default_factory=dict)
    wrapped: dict[str, None] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    returned: str = ""
    where: str | None = None

    def global_name(self, hint: str, thing: Any) -> str:
        """The name by which the source reaches a thing."""
        if is_of_torch(thing) and thing is not device:
            return qualified_name(thing) if callable(thing) and not isinstance(thing, type) else shown_type(thing)
        name = self.namespace.create_name(hint, thing)
        self.globals.setdefault(name, thing)
        return name

    def value(self, arg: Any) -> str:
        """An argument as source."""
        if isinstance(arg, Size) or type(arg) is tuple:
            return f"({', '.join(map(self.value, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{key!r}: {self.value(item)}" for key, item in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        if isinstance(arg, enum.Enum):
            return f"{self.global_name(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, tuple):  # a named one
            return f"{self.global_name(type(arg).__name__, type(arg))}({', '.join(map(self.value, arg))})"
        if callable(arg) and not isinstance(arg, Node) and hasattr(arg, "__name__"):
            return self.global_name(arg.__name__, arg)
        return repr(arg)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The arguments of a call."""
        parts = [self.value(arg) for arg in args]
        return ", ".join([*parts, *(f"{name} = {self.value(arg)}" for name, arg in kwargs.items())])

    def annotation(self, node: Node) -> str:
        """`` : type`` where the node has one."""
        return "" if node.type is None else f" : {self._kind(node.type)}"

    def _kind(self, kind: Any) -> str:
        if isinstance(kind, type) and not is_of_torch(kind) and kind.__module__ != "builtins":
            return self.global_name(kind.__qualname__.replace(".", "_"), kind)
        if not isinstance(kind, (type, str)) and "typing" in repr(kind):
            import typing

            self.globals.setdefault("typing", typing)
        return shown_type(kind)

    def write(self, node: Node) -> None:
        """Add what the node says."""
        writers = {
            "placeholder": self._placeholder, "call_method": self._method, "call_function": self._function,
            "call_module": self._module, "get_attr": self._attribute, "output": self._output,
        }  # fmt: skip
        writers[node.op](node)

    def _set(self, node: Node, source: str) -> None:
        self.body.append(f"{node!r}{self.annotation(node)} = {source}")

    def _placeholder(self, node: Node) -> None:
        default = "" if not node.args else f" = {self.value(node.args[0])}"
        self.inputs.append(f"{node.target}{self.annotation(node)}{default}")
        raw = node.target.replace("*", "")
        if raw != repr(node):
            self.body.append(f"{node!r} = {raw}\n")

    def _method(self, node: Node) -> None:
        call = self.call(node.args[1:], node.kwargs)
        self._set(node, f"{_reached(self.value(node.args[0]), node.target)}({call})")

    def _module(self, node: Node) -> None:
        self._set(node, f"{_reached(self.root, node.target)}({self.call(node.args, node.kwargs)})")

    def _attribute(self, node: Node) -> None:
        self._set(node, _reached(self.root, node.target))

    def _output(self, node: Node) -> None:
        self.returned = "" if node.type is None else f" -> {self._kind(node.type)}"
        self.body.append(f"return {self.value(node.args[0])}")

    def _function(self, node: Node) -> None:
        target, args = node.target, node.args
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", None) == "_operator" and name in EXPRESSIONS:
            self._set(node, EXPRESSIONS[name].format(*map(self.value, args)))
            return
        if getattr(target, "__module__", None) == "_operator" and name in STATEMENTS:
            self.body.append(f"{STATEMENTS[name].format(*map(self.value, args))};  {node!r} = {self.value(args[0])}")
            return
        if target is builtins.getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            self._set(node, _reached(self.value(args[0]), args[1]))
            return
        called = self.global_name(qualified_name(target).replace(".", "_"), target)
        self._set(node, f"{called}({self.call(args, node.kwargs)})")
        if node.meta.get("is_wrapped"):
            self.wrapped.setdefault(called)

    def forget(self, names: list[Node], node: Node) -> None:
        """Let go of what nobody reads any more."""
        if node.op == "placeholder":
            return
        if node.op == "output":
            self.body.append("\n")
        elif names:
            self.body.append(f";  {' = '.join([*map(repr, names), 'None'])}\n")
        else:
            self.body.append("\n")

    def say_where(self, node: Node) -> None:
        """The comment above the nodes of one line of the user's program."""
        if node.op in ("placeholder", "output"):
            return
        text = _line_of(node.stack_trace) if node.stack_trace else "# No stacktrace found for following nodes"
        if text != self.where:
            self.body.append(f"{text}\n" if self.where is None else f"\n{text}\n")
            self.where = text


def _line_of(trace: str) -> str:
    """The innermost line of a stack trace, as one comment."""
    lines = trace.strip().splitlines()
    place = max(i for i, line in enumerate(lines) if line.strip().startswith("File "))
    file, line, name = lines[place].strip().removeprefix("File ").split(", ", 2)
    code = lines[place + 1].strip() if place + 1 < len(lines) else ""
    return f"# File: {file.strip(chr(34))}:{line.removeprefix('line ')} in {name.removeprefix('in ')}, code: {code}"


def _reached(base: str, target: str) -> str:
    """``base.a.b``; parts that are no identifiers are asked for with ``getattr``."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """By node: those that it is the last to read."""
    done: set[Node] = set()
    last: dict[Node, list[Node]] = {}

    def read(node: Node, user: Node) -> Node:
        if node not in done:
            done.add(node)
            last.setdefault(user, []).append(node)
        return node

    for user in reversed(graph.nodes):
        map_arg((user.args, user.kwargs), lambda node, user=user: read(node, user))  # type: ignore[misc]
    return last


def python_code(graph: Graph, root: str, verbose: bool = False, **_options: Any) -> PythonCode:
    """The graph as source."""
    namespace = Namespace()
    for node in graph.nodes:
        namespace.names[node] = node.name
        namespace.used.add(node.name)
    writer = _Writer(root, namespace, verbose)
    last = _last_uses(graph)
    for node in graph.nodes:
        if verbose:
            writer.say_where(node)
        writer.write(node)
        names = list(last.get(node, ()))
        if not node.users and node.op != "placeholder":
            names.append(node)
        writer.forget(names, node)
    body = writer.body or ["pass\n"]
    for transform in graph.transformers:
        body = transform(body)
    wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
    inputs = ", ".join(["self", *writer.inputs])
    head = f"\n{wraps}\n\ndef forward({inputs}){writer.returned}:"
    code = "".join(body)
    return PythonCode(f"{head}\n" + "\n".join(f"    {line}" for line in code.split("\n")), _given(writer.globals))


def _given(named: dict[str, Any]) -> dict[str, Any]:
    """The globals of the source, with those that every graph has."""
    import stridescope.engine.torch as torch

    return {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": torch, "device": device,
            "operator": operator, **named}  # fmt: skip
