"""``torch.autograd``: gradients, grad mode, and what one can hook into."""

from __future__ import annotations

from stridescope.engine.autograd.anomaly import detect_anomaly, set_detect_anomaly
from stridescope.engine.autograd.api import backward_many as backward
from stridescope.engine.autograd.api import grad
from stridescope.engine.autograd.function import Function
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.autograd import (
    anomaly_mode,
    forward_ad,
    function,
    functional,
    grad_mode,
    graph,
    profiler,
    variable,
)
from stridescope.engine.torch.autograd import (
    gradcheck as _gradcheck,
)
from stridescope.engine.torch.autograd._view_tracking import is_view_replay_enabled
from stridescope.engine.torch.autograd.grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from stridescope.engine.torch.autograd.gradcheck import gradcheck, gradgradcheck
from stridescope.engine.torch.autograd.variable import Variable


def is_multithreading_enabled() -> bool:
    """What ``set_multithreading_enabled`` says."""
    return set_multithreading_enabled.enabled


__all__ = [
    "_force_original_view_tracking", "_unsafe_preserve_version_counter", "enforce_grad_layout_policy",
    "is_multithreading_enabled", "is_view_replay_enabled", "profiler",
    "Function", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
    "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "no_grad",
    "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled", "variable",
]  # fmt: skip
__getattr__ = missing_from("torch.autograd")
