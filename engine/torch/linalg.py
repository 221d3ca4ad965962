"""``torch.linalg``: linear algebra."""

from __future__ import annotations

from stridescope.engine.ops import FUNCTIONS

globals().update(FUNCTIONS["torch.linalg"])
__all__ = sorted(FUNCTIONS["torch.linalg"])
