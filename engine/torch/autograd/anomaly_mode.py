"""``torch.autograd.anomaly_mode``."""

from __future__ import annotations

from stridescope.engine.autograd.anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
