"""``torch.amp``: automatic mixed precision."""

from __future__ import annotations

from stridescope.engine.torch.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from stridescope.engine.torch.amp.grad_scaler import GradScaler
from stridescope.engine.torch.amp.state import is_autocast_available

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
