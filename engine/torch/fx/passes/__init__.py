"""``torch.fx.passes``: programs that read or change a graph."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.fx.passes import shape_prop

__getattr__ = missing_from("torch.fx.passes", __name__)
__all__ = ["shape_prop"]
