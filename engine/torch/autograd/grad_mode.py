"""``torch.no_grad`` and its kin, where PyTorch has them."""

from __future__ import annotations

from stridescope.engine.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from stridescope.engine.autograd.policies import _unsafe_preserve_version_counter, enforce_grad_layout_policy
from stridescope.engine.torch.autograd._view_tracking import _force_original_view_tracking

__all__ = [
    "_force_original_view_tracking", "_unsafe_preserve_version_counter", "enable_grad", "enforce_grad_layout_policy",
     "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip
