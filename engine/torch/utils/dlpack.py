"""``torch.utils.dlpack``: memory shared with other libraries."""

from __future__ import annotations

from stridescope.engine.ops.exchange import DLDeviceType, from_dlpack, to_dlpack
from stridescope.engine.torch._not_yet import missing_from

__getattr__ = missing_from("torch.utils.dlpack")

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
