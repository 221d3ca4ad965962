"""``torch.utils.hooks``."""

from __future__ import annotations

from stridescope.engine.autograd.handle import RemovableHandle

__all__ = ["RemovableHandle"]
