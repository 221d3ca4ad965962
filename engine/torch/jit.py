"""``torch.jit`` is not in Stridescope yet: any name of it says so."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import attribute_of

__getattr__ = attribute_of("torch.jit")
