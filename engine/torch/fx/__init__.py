"""``torch.fx``: programs as graphs, made by running them with stand-ins for their inputs, and turned back into code."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.fx import _symbolic_trace, immutable_collections, passes, proxy
from stridescope.engine.torch.fx._symbolic_trace import Tracer, symbolic_trace, wrap
from stridescope.engine.torch.fx.graph import Graph
from stridescope.engine.torch.fx.graph_module import GraphModule
from stridescope.engine.torch.fx.interpreter import Interpreter, Transformer
from stridescope.engine.torch.fx.node import Node, has_side_effect, map_arg
from stridescope.engine.torch.fx.proxy import Proxy
from stridescope.engine.torch.fx.subgraph_rewriter import replace_pattern

__getattr__ = missing_from("torch.fx", __name__)
__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect", "map_arg",
    "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip
