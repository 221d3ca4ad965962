"""How tensors print."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor


def text(self: Tensor) -> str:
    """The printed form."""
    return f"tensor({self._array.tolist()})"


METHODS: dict[str, Any] = {"__repr__": text}
