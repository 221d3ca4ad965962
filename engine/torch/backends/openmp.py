"""``torch.backends.openmp``: as in PyTorch's CPU build."""

from __future__ import annotations


def is_available() -> bool:
    """Always True: as in PyTorch's CPU build."""
    return True
