"""Floating-point warnings: NumPy's belong to the user's NumPy code, PyTorch's kernels give none.

Silencing them around every kernel call (``np.errstate``) costs more than a small op. So the engine installs one
handler: it is called only when a floating-point flag was raised, stays silent for the engine's own frames, and gives
everybody else the warning that NumPy would have given.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

_OURS = ("stridescope.engine.", "<op")


def _flagged(kind: str, flag: int) -> None:
    frame = sys._getframe(1)
    module = frame.f_globals.get("__name__", "")
    if module.startswith(_OURS[0]) or frame.f_code.co_filename.startswith(_OURS[1]):
        return
    warnings.warn(f"{kind} encountered", RuntimeWarning, stacklevel=2)


def install() -> None:
    """Route this thread's floating-point flags through the engine's handler."""
    np.seterrcall(_flagged)
    np.seterr(divide="call", over="call", invalid="call", under="ignore")
