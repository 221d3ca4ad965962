"""Warnings that point at the user's line, as PyTorch's do."""

from __future__ import annotations

import sys
import types
import warnings

_ENGINE = __name__.rpartition(".")[0] + "."


class Said:
    """What was warned of once, and whether all is to be said always (``torch.set_warn_always``)."""

    texts: set[str] = set()
    always = False


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost frame outside the engine."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def is_ours(frame: types.FrameType) -> bool:
    """Whether this is a frame of the engine: of its files, or of the code that it writes for an op."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.startswith(_ENGINE) or frame.f_code.co_filename.startswith("<op ")


def warn_once(text: str, category: type[Warning] = UserWarning, *, once: str = "") -> None:
    """Warn the first time in this process (PyTorch's ``TORCH_WARN_ONCE``); ``once`` is what several texts share."""
    if Said.always or (once or text) not in Said.texts:
        Said.texts.add(once or text)
        warn(text, category)


def internal(text: str, place: str) -> str:
    """``text`` with the tail that PyTorch adds to warnings of its C++ part; ``place`` is its file and line."""
    return f"{text} (Triggered internally at /__w/pytorch/pytorch/{place}.)"
