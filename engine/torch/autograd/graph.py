"""``torch.autograd.graph``."""

from __future__ import annotations

import contextlib

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


class _Settings:
    """What was asked for; streams never differ here, and captures are never stale."""

    warns_of_streams = True
    overrides_captures = False


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn when a leaf's gradient comes from another stream than the leaf's; here it never does."""
    _Settings.warns_of_streams = enabled


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accepted: no backward pass of a captured graph meets a stream that is gone."""
    _Settings.overrides_captures = enabled


def region_activation_memory_budget(budget: float) -> contextlib.AbstractContextManager[None]:
    """Refused, as outside of ``torch.compile``: it is a hint to a compiler."""
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"torch.autograd.graph.region_activation_memory_budget: must be in [0, 1], got {budget}")
    raise RuntimeError(
        "torch.autograd.graph.region_activation_memory_budget can only be used inside a torch.compile region; it has "
        "no effect in eager mode."
    )


__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "node_creation_hook", "region_activation_memory_budget", "register_multi_grad_hook",
    "save_on_cpu", "saved_tensors_hooks", "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]  # fmt: skip
__getattr__ = missing_from("torch.autograd.graph")
