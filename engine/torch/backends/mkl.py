"""``torch.backends.mkl``: as in PyTorch's CPU build, for scripts that ask before they use what needs it."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from


def is_available() -> bool:
    """Always True: as in PyTorch's CPU build."""
    return True


__getattr__ = missing_from("torch.backends.mkl")
