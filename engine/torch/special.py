"""``torch.special``: special functions."""

from __future__ import annotations

from stridescope.engine.ops import FUNCTIONS

globals().update(FUNCTIONS["torch.special"])
__all__ = sorted(FUNCTIONS["torch.special"])
