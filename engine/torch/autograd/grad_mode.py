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

__all__ = [
    "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip
