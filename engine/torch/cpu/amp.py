"""``torch.cpu.amp``: the older names of ``torch.amp``, for ``cpu``."""

from __future__ import annotations

from stridescope.engine.torch.amp import older


class autocast(older.OlderAutocast):
    """``torch.autocast("cpu")``."""

    of = "cpu"


class GradScaler(older.OlderGradScaler):
    """``torch.amp.GradScaler("cpu")``."""

    of = "cpu"


__all__ = ["GradScaler", "autocast"]
