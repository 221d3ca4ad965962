"""``torch.utils.hooks``."""

from __future__ import annotations

from stridescope.engine.autograd.handle import RemovableHandle
from stridescope.engine.torch._not_yet import missing_from

__getattr__ = missing_from("torch.utils.hooks")

__all__ = ["RemovableHandle"]
