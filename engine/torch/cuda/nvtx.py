"""``torch.cuda.nvtx``: named ranges for profilers. Nothing profiles a simulated GPU, so they only nest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from stridescope.engine.torch._not_yet import missing_from

_open: list[str] = []


def range_push(msg: str) -> int:
    """Open a range; returns its depth, 0 for the outermost."""
    _open.append(msg)
    return len(_open) - 1


def range_pop() -> int:
    """Close the innermost range; returns the depth it had, -1 when none is open."""
    if not _open:
        return -1
    _open.pop()
    return len(_open)


def mark(msg: str) -> None:
    """Mark a moment."""


@contextlib.contextmanager
def range(msg: str, *args: object, **names: object) -> Iterator[None]:
    """A range as long as the block."""
    range_push(msg.format(*args, **names))
    try:
        yield
    finally:
        range_pop()


__getattr__ = missing_from("torch.cuda.nvtx")
