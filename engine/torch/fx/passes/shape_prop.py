"""Noting down at each node what its tensor is like: the shape, the dtype, the strides."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from stridescope.engine.dtype import dtype
from stridescope.engine.layout import channels_last, contiguous_format, memory_format
from stridescope.engine.tensor import Size, Tensor
from stridescope.engine.torch.fx.interpreter import Interpreter
from stridescope.engine.torch.fx.node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """What a tensor is like, without its elements."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


TensorMetadata.__module__ = "torch.fx.passes.shape_prop"


def _facts(tensor: Tensor) -> TensorMetadata:
    order = None
    for candidate in (contiguous_format, channels_last):
        if order is None and (candidate is contiguous_format or tensor.dim() == 4):
            order = candidate if tensor.is_contiguous(memory_format=candidate) else None
    return TensorMetadata(tensor.shape, tensor.dtype, tensor.requires_grad, tensor.stride(), order, False, {})


class ShapeProp(Interpreter):
    """Runs the graph; each node gets ``meta["tensor_meta"]`` and ``meta["type"]``.

    Raises:
        RuntimeError: a node failed; the text names it.
    """

    __module__ = "torch.fx.passes.shape_prop"

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """Run the node and note down what it gave."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = []

        def note(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            found.append(leaf)
            return _facts(leaf)

        noted = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = noted
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with these inputs."""
        return super().run(*args)
