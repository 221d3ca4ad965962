"""``torch.fft``: discrete Fourier transforms."""

from __future__ import annotations

from stridescope.engine.ops import FUNCTIONS

globals().update(FUNCTIONS["torch.fft"])
__all__ = sorted(FUNCTIONS["torch.fft"])
