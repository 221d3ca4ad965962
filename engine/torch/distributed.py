"""``torch.distributed`` is not available here, as in a PyTorch that was built without it."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import attribute_of


def is_available() -> bool:
    """Always False."""
    return False


def is_initialized() -> bool:
    """Always False: there is no process group."""
    return False


__getattr__ = attribute_of("torch.distributed")
