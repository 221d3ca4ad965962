"""Op events: what the dispatcher does."""

from __future__ import annotations

from typing import Any

from stridescope.engine.events.base import Event


class OpBegan(Event, family="op"):
    """{op} begins."""

    op: str
    inputs: tuple[int, ...]
    arguments: tuple[Any, ...]
    frame: int
    source: int
    line: int
    column: int
    end_line: int
    end_column: int


class KeysChosen(Event, family="op"):
    """The call passes through {keys}."""

    keys: tuple[str, ...]


class DtypePromoted(Event, family="op"):
    """The inputs {inputs} are computed as {result}."""

    inputs: tuple[str, ...]
    result: str


class CopyMade(Event, family="op"):
    """{nbytes} bytes are copied: {reason}."""

    nbytes: int
    reason: str


class OpEnded(Event, family="op"):
    """{op} gives its result."""

    op: str
    outputs: tuple[int, ...]


class OpFailed(Event, family="op"):
    """{op} is refused: {message}"""

    op: str
    message: str
