"""``torch.cuda.amp``: the older names of ``torch.amp``, for ``cuda``."""

from __future__ import annotations

import functools

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.amp import autocast_mode, older


class autocast(older.OlderAutocast):
    """``torch.autocast("cuda")``."""

    of = "cuda"


class GradScaler(older.OlderGradScaler):
    """``torch.amp.GradScaler("cuda")``."""

    of = "cuda"


custom_fwd = functools.partial(autocast_mode.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(autocast_mode.custom_bwd, device_type="cuda")

__getattr__ = missing_from("torch.cuda.amp")

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
