"""Whether things may move: one switch for all animations."""

from __future__ import annotations

MILLISECONDS = 220

_wanted = [True]


def wanted() -> bool:
    """Whether animations play."""
    return _wanted[0]


def allow(allowed: bool) -> None:
    """Let animations play, or skip them all."""
    _wanted[0] = allowed
