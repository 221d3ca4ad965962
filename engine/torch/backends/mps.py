"""``torch.backends.mps``: Apple's GPUs are not here."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from


def is_available() -> bool:
    """Always False: no Apple GPU."""
    return False


def is_built() -> bool:
    """Always False: no support for one."""
    return False


__getattr__ = missing_from("torch.backends.mps")
