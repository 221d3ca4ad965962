"""``torch.nn.attention``: which kernel computes attention. The engine has one for all of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import Enum
from typing import Any

from stridescope.engine.torch._not_yet import missing_from


class SDPBackend(Enum):
    """The kernels that PyTorch has for scaled dot product attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<SDPBackend.{self.name}: {self.value}>"


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[dict[str, Any]]:
    """Allow only some kernels; raises AssertionError for what is no SDPBackend. Results are the same here."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    yield {}


SDPBackend.__module__ = "torch.nn.attention"
__getattr__ = missing_from("torch.nn.attention")
__all__ = ["SDPBackend", "sdpa_kernel"]
