"""``torch.signal``: windows."""

from __future__ import annotations

from stridescope.engine.torch.signal import windows

__all__ = ["windows"]
