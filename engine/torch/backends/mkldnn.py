"""``torch.backends.mkldnn``: as in PyTorch's CPU build."""

from __future__ import annotations

enabled = True
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Always True: as in PyTorch's CPU build."""
    return True
