"""``torch.linalg``: linear algebra."""

from __future__ import annotations

from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.ops.linalg_common import LinAlgError

globals().update(FUNCTIONS["torch.linalg"])
__all__ = ["LinAlgError", *sorted(FUNCTIONS["torch.linalg"])]
