"""What of autograd PyTorch has at the top: ``torch.is_anomaly_enabled`` and the like."""

from __future__ import annotations

from typing import Any

from stridescope.engine.autograd.anomaly import switch
from stridescope.engine.autograd.modes import anomaly
from stridescope.engine.tensor import Tensor


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode also looks for NaN."""
    return anomaly.check_nan


def is_inference(input: Tensor) -> bool:
    """Whether this is an inference tensor."""
    return input._inference


FUNCTIONS: dict[str, Any] = {
    "is_anomaly_check_nan_enabled": is_anomaly_check_nan_enabled,
    "is_anomaly_enabled": is_anomaly_enabled,
    "is_inference": is_inference,
    "set_anomaly_enabled": switch,
}
