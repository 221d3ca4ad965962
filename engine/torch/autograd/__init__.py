"""``torch.autograd``: gradients, grad mode, and what one can hook into."""

from __future__ import annotations

from stridescope.engine.autograd.api import backward_many as backward
from stridescope.engine.tensor import Tensor as Variable
from stridescope.engine.torch.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)

__all__ = ["Variable", "backward", "enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
