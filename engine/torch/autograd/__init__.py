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
    variable,
)
from stridescope.engine.torch.autograd import (
    gradcheck as _gradcheck,
)
from stridescope.engine.torch.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from stridescope.engine.torch.autograd.gradcheck import gradcheck, gradgradcheck
from stridescope.engine.torch.autograd.variable import Variable

__all__ = [
    "Function", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
    "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "no_grad",
    "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled", "variable",
]  # fmt: skip
__getattr__ = missing_from("torch.autograd")
