"""The older names of ``torch.amp`` for one kind of device: ``torch.cuda.amp`` and ``torch.cpu.amp``."""

from __future__ import annotations

from typing import Any, ClassVar

from stridescope.engine.torch.amp import autocast_mode, grad_scaler
from stridescope.engine.warn import warn


def _deprecated(device: str, name: str) -> None:
    warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('{device}', args...)` "
        "instead.",
        FutureWarning,
    )


class OlderAutocast(autocast_mode.autocast):
    """``torch.autocast`` for the device that a subclass names."""

    of: ClassVar[str]

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        _deprecated(self.of, "autocast")
        super().__init__(self.of, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class OlderGradScaler(grad_scaler.GradScaler):
    """``torch.amp.GradScaler`` for the device that a subclass names."""

    of: ClassVar[str]

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _deprecated(self.of, "GradScaler")
        super().__init__(self.of, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
