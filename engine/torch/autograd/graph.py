"""``torch.autograd.graph``."""

from __future__ import annotations

from stridescope.engine.autograd.api import GradientEdge
from stridescope.engine.autograd.graph import (
    get_gradient_edge,
    increment_version,
    node_creation_hook,
    register_multi_grad_hook,
)
from stridescope.engine.autograd.node import Node
from stridescope.engine.autograd.saved_hooks import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from stridescope.engine.torch._not_yet import missing_from

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "node_creation_hook", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip
__getattr__ = missing_from("torch.autograd.graph")
