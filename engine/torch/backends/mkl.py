"""``torch.backends.mkl``: as in PyTorch's CPU build, for scripts that ask before they use what needs it."""

from __future__ import annotations


def is_available() -> bool:
    """Always True: as in PyTorch's CPU build."""
    return True
