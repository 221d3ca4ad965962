"""What an op had written when it failed: PyTorch's kernels check an index when they come to it."""

from __future__ import annotations

from typing import Any

from stridescope.engine.announce import record_values
from stridescope.engine.events import journal
from stridescope.engine.tensor import Tensor

_KEY = "stridescope: written"


def halfway(error: Exception, written: Tensor) -> Exception:
    """``error``, which knows what the tensor to write holds by then."""
    error.__dict__[_KEY] = written
    return error


def written_before(error: Exception) -> Tensor | None:
    """What was written before ``error``, told once; None where nothing was."""
    found: Any = error.__dict__.pop(_KEY, None)
    return found  # type: ignore[no-any-return]


def tell_written(target: Tensor) -> None:
    """Tell the recording that a call which failed has changed the values of ``target``; its version stays."""
    if journal.emit is not None:
        record_values(target.storage_, target.dtype)
