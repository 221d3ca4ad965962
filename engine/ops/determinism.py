"""``torch.use_deterministic_algorithms``: what PyTorch refuses under it, and what memory that nobody set then holds.

This engine computes in one way only; under the switch it still refuses what PyTorch's CPU has no reproducible kernel
for, because a script that it lets through must also run elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import internal, warn


class Determinism:
    """What was asked for. ``fill`` is ``torch.utils.deterministic.fill_uninitialized_memory``."""

    enabled = False
    warn_only = False
    fill = True


def alert(name: str) -> None:
    """Refuse, or warn of, what PyTorch computes differently from run to run; ``name`` is that of its kernel."""
    if not Determinism.enabled:
        return
    head = f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    ask = (
        "file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic support "
        "for this operation."
    )
    if Determinism.warn_only:
        warn(internal(f"{head}, warn_only=True)'. You can {ask}", "aten/src/ATen/Context.cpp:186"))
        return
    raise RuntimeError(
        f"{head})'. You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, "
        f"if that's acceptable for your application. You can also {ask}"
    )


def unset(tensor: Tensor) -> Tensor:
    """Return a tensor that nobody has set: under the switch it holds NaN, or the greatest value of its dtype."""
    if Determinism.enabled and Determinism.fill:
        tensor._array[...] = known_value(tensor._array.dtype)
    return tensor


def known_value(kind: np.dtype[Any]) -> Any:
    """Return what fills unset memory: NaN, the greatest integer, or True."""
    if kind.kind in "iu":
        return np.iinfo(kind).max
    return True if kind.kind == "b" else np.nan
