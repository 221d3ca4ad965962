"""``torch.backends.cpu``."""

from __future__ import annotations


def get_cpu_capability() -> str:
    """The vector instructions whose order of sums the engine follows: ``AVX2``."""
    return "AVX2"
