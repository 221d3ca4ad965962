"""A module whose ``forward`` is written from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.fx.graph import Graph
from stridescope.engine.torch.nn.modules.module import Module

_NUMBERS = itertools.count()


def _forward_of(source: str, names: dict[str, Any]) -> Any:
    """The function that the source defines; tracebacks find its lines."""
    file = f"<eval_with_key>.{next(_NUMBERS)}"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope = dict(names)
    exec(compile(source, file, "exec"), scope)
    return scope["forward"]


def _put(module: Module, target: str, value: Any) -> None:
    """Give a module the attribute of a dotted name; the modules in between are made."""
    *prefix, last = target.split(".")
    for part in prefix:
        if getattr(module, part, None) is None:
            setattr(module, part, Module())
        module = getattr(module, part)
    if isinstance(value, Tensor) and not value.requires_grad and last not in module._parameters:
        module.register_buffer(last, value)
    else:
        setattr(module, last, value)


def _look_up(root: Any, target: str) -> Any:
    for part in target.split("."):
        root = getattr(root, part, None)
    return root


class GraphModule(Module):
    """A module that a graph says the ``forward`` of; each object has a class of its own, for that is where it lies."""

    __module__ = "torch.fx.graph_module"

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        """Make the object's own class."""
        own = next(c for c in cls.__mro__ if "<own>" not in c.__dict__)
        made = type("GraphModuleImpl", (own,), {"<own>": True, "__module__": "torch.fx.graph_module"})
        return super().__new__(made)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                self._take(root, node)
        self.__dict__["meta"] = dict(getattr(root, "meta", {})) if isinstance(root, Module) else {}
        self.graph = graph

    def _take(self, root: Module | dict[str, Any], node: Any) -> None:
        if isinstance(root, Module):
            value = _look_up(root, node.target)
            if value is not None:
                _put(self, node.target, value)
            return
        if node.target not in root:
            raise RuntimeError(
                f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
            )
        _put(self, node.target, root[node.target])

    @property
    def graph(self) -> Graph:
        """The graph; to change it and have the code follow, call :meth:`recompile`."""
        graph: Graph = self.__dict__["_graph"]
        return graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        self.__dict__["_graph"] = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of ``forward``."""
        return str(self.__dict__["_code"])

    def recompile(self) -> Any:
        """Write ``forward`` from the graph as it is now."""
        made = self.graph.python_code("self")
        self.__dict__["_code"] = made.src
        type(self).forward = _forward_of(made.src, made.globals)  # type: ignore[method-assign]
        return made

    def print_readable(
        self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
        colored: bool = False, **_options: Any,
    ) -> str:  # fmt: skip
        """The code as the source of a class, with the lines of the program that it came from; prints it too."""
        code = self.graph.python_code("self", verbose=True).src.lstrip("\n")
        lines = [f"    {line}" if line.strip() else "" for line in code.rstrip(" \n").split("\n")]
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + "\n".join(lines) + "\n"
        for name, child in self.named_children():
            if isinstance(child, GraphModule):
                below = child.print_readable(print_output=False).replace(
                    f"class {type(child).__name__}", f"class {name}"
                )
                text += "\n" + "\n".join(f"    {line}" if line.strip() else "" for line in below.split("\n"))
        if print_output:
            print(text)
        return text

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a module under a dotted name; the modules on the way are made. False where something else lies there."""
        *prefix, last = target.split(".")
        module: Module = self
        for part in prefix:
            if getattr(module, part, None) is None:
                setattr(module, part, Module())
            module = getattr(module, part)
            if not isinstance(module, Module):
                return False
        module.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take a module away; False where there is none of the name."""
        *prefix, last = target.split(".")
        module = _look_up(self, ".".join(prefix)) if prefix else self
        if not isinstance(module, Module) or not isinstance(getattr(module, last, None), Module):
            return False
        delattr(module, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take away the modules that no node calls or reads from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used |= {".".join(parts[: i + 1]) for i in range(len(parts))}
                if node.op == "call_module":
                    called = self.get_submodule(node.target)
                    used |= {f"{node.target}.{name}" for name, _ in called.named_modules() if name}
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        source = Module()
        source.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items() if k != "_graph"})
        return GraphModule(source, copy.deepcopy(self.graph, memo))

    def __copy__(self) -> GraphModule:
        return GraphModule(self, copy.deepcopy(self.graph))

    def __str__(self) -> str:
        told = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__repr__()}\n{self.code}\n{told}"
