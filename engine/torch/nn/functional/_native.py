"""The functions under ``torch`` and ``torch._C._nn`` that ``torch.nn.functional`` hands on or wraps."""

from __future__ import annotations

from stridescope.engine.dispatch.parser import Function
from stridescope.engine.ops import FUNCTIONS

TORCH: dict[str, Function] = FUNCTIONS["torch"]
NATIVE: dict[str, Function] = FUNCTIONS["torch._C._nn"]
