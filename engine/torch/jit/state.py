"""What of ``torch.jit`` is underway."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


class State:
    """The trace that is being made, and how many scripted functions run."""

    tracing: Any = None
    scripting = 0


@contextlib.contextmanager
def scripting() -> Iterator[None]:
    """What runs in the block is a scripted function."""
    State.scripting += 1
    try:
        yield
    finally:
        State.scripting -= 1


def is_scripting() -> bool:
    """Whether a scripted function runs."""
    return State.scripting > 0


def is_tracing() -> bool:
    """Whether a trace is being made."""
    return State.tracing is not None
