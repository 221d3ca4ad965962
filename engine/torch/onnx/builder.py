"""Making ONNX nodes one after the other, while a graph of aten ops is read."""

from __future__ import annotations

from typing import Any

from stridescope.engine.ops.from_data import tensor as make_tensor
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.fx.node import Node as FxNode
from stridescope.engine.torch.onnx.model import Graph, Node, Value


def dtype_name(tensor: Tensor) -> str:
    """The dtype without its module."""
    return str(tensor.dtype).removeprefix("torch.")


class Builder:
    """The ONNX graph being made.

    Attributes:
        values: by the name of a node of the aten graph, the value here.
        dynamic: by the name of an input, its sizes that may change and what they are called.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.values: dict[str, Any] = {}
        self.current: FxNode | None = None
        self._count = 0

    def name(self, hint: str = "val") -> str:
        """A name that no other value has."""
        self._count += 1
        return f"{hint}_{self._count - 1}"

    def get(self, arg: Any) -> Value | None:
        """An argument as a value: a node's, or a constant's."""
        if arg is None:
            return None
        if isinstance(arg, FxNode):
            value: Value = self.values[arg.name]
            return value
        return self.constant(arg)

    def like(self, arg: Any, other: FxNode) -> Value | None:
        """An argument as a value; a number in the dtype of another one."""
        if isinstance(arg, FxNode) or arg is None:
            return self.get(arg)
        return self.constant(make_tensor(arg, dtype=example(other).dtype))

    def constant(self, data: Any) -> Value:
        """A constant of the graph: numbers, lists of ints, tensors."""
        tensor = data if isinstance(data, Tensor) else make_tensor(data)
        value = Value(self.name(), dtype_name(tensor), tuple(tensor.shape))
        self.graph.nodes.append(Node("Constant", [], [value], {"value": tensor}, name=f"node_{value.name}"))
        return value

    def add(self, op_type: str, *inputs: Value | None, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; gives its value, or its values where it has several."""
        hint = self.current.name if self.current is not None else "val"
        made = [Value(self.name(hint)) for _ in range(outputs)]
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        kept = {name: value for name, value in attributes.items() if value is not None}
        self.graph.nodes.append(Node(op_type, given, made, kept, name=f"node_{op_type}_{len(self.graph.nodes)}"))
        return made[0] if outputs == 1 else made


def example(node: Any) -> Tensor:
    """The tensor that a node of the aten graph gave for the example inputs."""
    tensor: Tensor = node.meta["val"]
    return tensor
