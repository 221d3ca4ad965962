"""What ``import torch`` gives a user's script: PyTorch's names over the engine."""

from __future__ import annotations

from typing import Any

from stridescope.engine.device import device
from stridescope.engine.dtype import BY_NAME, dtype
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.ops.creation import tensor
from stridescope.engine.tensor import Size, Tensor

__version__ = "2.13.0"

globals().update(FUNCTIONS["torch"])
globals().update(BY_NAME)
bool = BY_NAME["bool"]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'torch' has no attribute '{name}'")


__all__ = ["Size", "Tensor", "device", "dtype", "tensor"]
