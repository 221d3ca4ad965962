"""``torch.compiler``: nothing is ever compiled here."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import attribute_of


def is_compiling() -> bool:
    """Always False."""
    return False


__getattr__ = attribute_of("torch.compiler")
