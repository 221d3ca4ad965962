"""``torch.cpu``: the CPU seen as a device like any other; its work is always done when a call returns."""

from __future__ import annotations

import contextlib
from typing import Any

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.cpu import amp as amp


class Stream:
    """The only queue of the CPU."""

    def __init__(self, priority: int = -1) -> None: ...

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def record_event(self) -> None:
        """Nothing to record."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""


class StreamContext(contextlib.AbstractContextManager["StreamContext"]):
    """``with torch.cpu.stream(s):`` changes nothing."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __exit__(self, *failure: object) -> None: ...


_current = Stream()


def is_available() -> bool:
    """Always True."""
    return True


def is_initialized() -> bool:
    """Always True."""
    return True


def device_count() -> int:
    """Always 1."""
    return 1


def current_device() -> str:
    """Always ``cpu``."""
    return "cpu"


def set_device(device: Any) -> None:
    """There is no other CPU to choose."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""


def current_stream(device: Any = None) -> Stream:
    """The only queue."""
    return _current


def stream(stream: Stream) -> StreamContext:
    """A context in which ``stream`` is the current one, which it is anyway."""
    return StreamContext(stream)


__getattr__ = missing_from("torch.cpu")
