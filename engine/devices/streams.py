"""The current stream of each device, per thread, and the handles of new streams."""

from __future__ import annotations

import itertools
import threading

DEFAULT_STREAM = 0


class _Current(threading.local):
    """Every thread starts on the default stream of device 0."""

    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, int] = {}


_current = _Current()
_handles = itertools.count(1)


def current_stream(device: int) -> int:
    """The handle of the stream that this thread's work on a device joins."""
    return _current.streams.get(device, DEFAULT_STREAM)


def set_current_stream(device: int, stream: int) -> None:
    """Let this thread's work on a device join another stream."""
    _current.streams[device] = stream


def current_device_index() -> int:
    """The index of this thread's current cuda device."""
    return _current.device


def set_current_device_index(index: int) -> None:
    """Make another cuda device this thread's current one."""
    _current.device = index


def new_stream_handle() -> int:
    """A handle for a new simulated stream: 1, 2, 3 and so on."""
    return next(_handles)
