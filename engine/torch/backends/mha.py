"""``torch.backends.mha``: whether attention layers may take their fast path; here all paths give the same values."""

from __future__ import annotations


class _Mha:
    fastpath = True


def get_fastpath_enabled() -> bool:
    """Whether the fast path is allowed."""
    return _Mha.fastpath


def set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid the fast path."""
    _Mha.fastpath = value
