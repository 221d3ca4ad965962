"""``torch.types``: names for annotations."""

from __future__ import annotations

import os
from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from collections.abc import Sequence
from typing import Any

from stridescope.engine.device import device as _device_type
from stridescope.engine.tensor import Size, Tensor

_TensorOrTensors = Tensor | Sequence[Tensor]
_size = Size | list[int] | tuple[int, ...]
_device = _device_type
Device = _device_type | str | int | None
Number = _int | _float | _bool
FileLike = str | os.PathLike[str] | Any
Storage: Any = Any

__all__ = ["Device", "FileLike", "Number", "Storage"]
