"""``torch.backends.opt_einsum``: einsum takes its operands from left to right, as PyTorch does without opt_einsum."""

from __future__ import annotations

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Always False."""
    return False
