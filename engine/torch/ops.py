"""``torch.ops``: the ops as objects, by namespace; ``aten`` is the one that is here."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torch._ops import aten

__all__ = ["aten"]
__getattr__ = attribute_of("torch.ops")
