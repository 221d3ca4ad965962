"""An ONNX graph as objects: values, nodes with their attributes, and the tensors that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stridescope.engine.tensor import Tensor


@dataclass
class Value:
    """An edge of the graph: a name, and what its tensor is like."""

    name: str
    dtype: str = ""
    shape: tuple[int | str, ...] = ()

    def __repr__(self) -> str:
        return f"%{self.name}<{self.dtype},{list(self.shape)}>"


@dataclass
class Node:
    """One ONNX operator."""

    op_type: str
    inputs: list[Value | None]
    outputs: list[Value]
    attributes: dict[str, Any] = field(default_factory=dict)
    domain: str = ""
    name: str = ""

    def __repr__(self) -> str:
        named = "{" + ", ".join(f"{key}={value}" for key, value in self.attributes.items()) + "}"
        results = ", ".join(map(repr, self.outputs))
        call = f"{self.op_type}({', '.join(map(repr, self.inputs))})"
        return f"{results} ⬅️ ::{call} {named if self.attributes else ''}".rstrip()


@dataclass
class Graph:
    """The nodes in order, the inputs and outputs, and the tensors that the model holds."""

    name: str = "main_graph"
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    initializers: dict[str, Tensor] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, place: int) -> Node:
        return self.nodes[place]


@dataclass
class Model:
    """A graph with the versions that it is written for."""

    graph: Graph
    opset: int
    ir_version: int = 10
    producer_name: str = "pytorch"
    producer_version: str = ""

    @property
    def opset_imports(self) -> dict[str, int]:
        """The version of the operators, by their domain."""
        return {"": self.opset}
