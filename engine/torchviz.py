"""``torchviz``: ``make_dot`` draws a graph as Graphviz text, with the nodes and colours that torchviz gives them.

Grey boxes are backward nodes, light blue ones leaves, green ones results (darker: the base of a view), orange ones
saved tensors. Writing the text needs nothing; ``render`` needs Graphviz's ``dot`` for pictures.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stridescope.engine.autograd.node import AccumulateGrad, Node
from stridescope.engine.tensor import Tensor

_SAVED = "_saved_"
_NODE_STYLE = "align=left fontname=monospace fontsize=10 height=0.2 ranksep=0.1 shape=box style=filled"
_ROW, _LEAST = 0.15, 12  # inches per line of the text, and the least size of the drawing


class Dot:
    """A graph as Graphviz text."""

    def __init__(self) -> None:
        self.body: list[str] = []
        self.graph_attr: dict[str, str] = {}
        self.node_attr = dict(part.split("=", 1) for part in _NODE_STYLE.split())
        self.format = "pdf"

    def node(self, name: str, label: str | None = None, **attributes: str) -> None:
        """Add a box."""
        shown = {} if label is None else {"label": label}
        self.body.append(f"\t{_quoted(name)}{_attributes({**shown, **attributes})}\n")

    def edge(self, tail: str, head: str, **attributes: str) -> None:
        """Add an arrow."""
        self.body.append(f"\t{_quoted(tail)} -> {_quoted(head)}{_attributes(attributes)}\n")

    @property
    def source(self) -> str:
        """The text."""
        head = [f"\tgraph{_attributes(self.graph_attr)}\n", f"\tnode{_attributes(self.node_attr)}\n"]
        return "".join(["digraph {\n", *head, *self.body, "}\n"])

    def __str__(self) -> str:
        return self.source

    def __iter__(self) -> Iterator[str]:
        return iter(self.source.splitlines(keepends=True))

    def save(self, filename: str = "Digraph.gv", directory: str | None = None) -> str:
        """Write the text to a file and return its path."""
        path = Path(directory or ".") / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.source, encoding="utf-8")
        return str(path)

    def pipe(self, format: str | None = None) -> bytes:
        """The drawing, made by Graphviz; raises RuntimeError when Graphviz is not installed."""
        dot = shutil.which("dot")
        if dot is None:
            raise RuntimeError("drawing needs Graphviz: install it so that 'dot' is on the path, or use .source")
        done = subprocess.run([dot, f"-T{format or self.format}"], input=self.source.encode(), capture_output=True)
        if done.returncode:
            raise RuntimeError(f"dot failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def render(
        self,
        filename: str = "Digraph.gv",
        directory: str | None = None,
        view: bool = False,
        cleanup: bool = False,
        format: str | None = None,
        **ignored: Any,
    ) -> str:
        """Write the text and the drawing; returns the drawing's path."""
        kind = format or self.format
        drawing = self.pipe(kind)
        text = Path(self.save(filename, directory))
        picture = text.with_name(f"{text.name}.{kind}")
        picture.write_bytes(drawing)
        if cleanup:
            text.unlink()
        return str(picture)


def _quoted(text: str) -> str:
    plain = text.replace("_", "a").isalnum() and (text.isdigit() or not text[0].isdigit())
    if plain and text.lower() not in ("node", "edge", "graph", "digraph", "subgraph", "strict"):
        return text
    escaped = text.replace('"', '\\"').replace("\n", "\n")
    return f'"{escaped}"'


def _attributes(attributes: dict[str, str]) -> str:
    if not attributes:
        return ""
    label = [f"label={_quoted(attributes['label'])}"] if "label" in attributes else []
    rest = [f"{key}={_quoted(value)}" for key, value in sorted(attributes.items()) if key != "label"]
    return f" [{' '.join(label + rest)}]"


class _Drawing:
    """One call of ``make_dot``."""

    def __init__(self, params: dict[str, Tensor] | None, attrs: bool, saved: bool, width: int) -> None:
        self.dot = Dot()
        self.names = {id(tensor): name for name, tensor in (params or {}).items()}
        self.attrs, self.saved, self.width = attrs, saved, max(width, 3)
        self.seen: set[int] = set()
        self.kept: list[Any] = []  # saved tensors that exist for the drawing only: their id must stay theirs

    def title(self, tensor: Tensor, name: str = "") -> str:
        """A tensor's name and sizes."""
        sizes = ", ".join(map(str, tensor.shape))
        return f"{name or self.names.get(id(tensor), '')}\n ({sizes})"

    def tensor(self, tensor: Tensor, color: str = "darkolivegreen1") -> None:
        """Add a result, its history and its base."""
        if id(tensor) in self.seen:
            return
        self.seen.add(id(tensor))
        self.dot.node(str(id(tensor)), self.title(tensor), fillcolor=color)
        node = tensor.grad_fn
        if node is not None:
            self.history(node)
            self.dot.edge(str(id(node)), str(id(tensor)))
        base = tensor._base_tensor
        if base is not None:
            self.tensor(base, "darkolivegreen3")
            self.dot.edge(str(id(base)), str(id(tensor)), style="dotted")

    def history(self, root: Node) -> None:
        """Add a node and all below it, in the order of a walk that goes down first (without recursion)."""
        stack: list[tuple[Node, Iterator[Any]]] = []
        self._enter(root, stack)
        while stack:
            node, children = stack[-1]
            for child, _ in children:
                if child is not None:
                    self.dot.edge(str(id(child)), str(id(node)))
                    self._enter(child, stack)
                    break
            else:
                stack.pop()
                self._saved_by_user(node)

    def _enter(self, node: Node, stack: list[tuple[Node, Iterator[Any]]]) -> None:
        if id(node) in self.seen:
            return
        self.seen.add(id(node))
        if self.saved:
            self._saved_by_op(node)
        if isinstance(node, AccumulateGrad):
            leaf = node.variable
            self.seen.add(id(leaf))
            self.dot.node(str(id(leaf)), self.title(leaf), fillcolor="lightblue")
            self.dot.edge(str(id(leaf)), str(id(node)))
        self.dot.node(str(id(node)), self._label(node))
        stack.append((node, iter(node.next_functions)))

    def _saved(self, node: Node) -> list[tuple[str, Any]]:
        return [(name[len(_SAVED) :], getattr(node, name)) for name in dir(node) if name.startswith(_SAVED)]

    def _saved_by_op(self, node: Node) -> None:
        for name, value in self._saved(node):
            several = isinstance(value, tuple)
            for position, one in enumerate(value if several else (value,)):
                if isinstance(one, Tensor):
                    self._orange(node, one, f"{name}[{position}]" if several else name, from_node=True)

    def _saved_by_user(self, node: Node) -> None:
        for one in getattr(node, "saved_tensors", ()):
            if one is not None:
                self._orange(node, one, "", from_node=False)

    def _orange(self, node: Node, tensor: Tensor, name: str, from_node: bool) -> None:
        self.kept.append(tensor)
        ends = (str(id(node)), str(id(tensor)))
        self.dot.edge(*(ends if from_node else reversed(ends)), dir="none")
        self.dot.node(str(id(tensor)), self.title(tensor, name), fillcolor="orange")

    def _label(self, node: Node) -> str:
        name = type(node).__name__
        shown = {key: _short(value) for key, value in self._saved(node)} if self.attrs else {}
        if not shown:
            return name
        left = max(map(len, shown))
        right = min(max(map(len, shown.values())), self.width)
        rows = [f"{key:>{left}}: {_cut(value, right):>{right}}" for key, value in shown.items()]
        return "\n".join([name, "-" * max(left + right + 2, len(name)), *rows])


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return "[saved tensor]"
    if isinstance(value, tuple) and any(isinstance(one, Tensor) for one in value):
        return "[saved tensors]"
    return str(value)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def make_dot(
    var: Any,
    params: dict[str, Tensor] | None = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
) -> Dot:
    """The graph below one result, or a tuple of them.

    Args:
        var: the results.
        params: names for leaves.
        show_attrs: write what nodes keep beside tensors into their boxes.
        show_saved: draw saved tensors of built-in nodes too; those of custom functions always are.
        max_attr_chars: where such a value is cut.
    """
    drawing = _Drawing(params, show_attrs, show_saved, max_attr_chars)
    for one in var if isinstance(var, tuple) else (var,):
        drawing.tensor(one)
    resize_graph(drawing.dot)
    return drawing.dot


def resize_graph(dot: Dot, size_per_element: float = _ROW, min_size: float = _LEAST) -> None:
    """Let the drawing grow with its number of lines."""
    size = max(min_size, len(dot.body) * size_per_element)
    dot.graph_attr["size"] = f"{size},{size}"


__all__ = ["Dot", "make_dot", "resize_graph"]
