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


# PyTorch makes no stream when one is asked for: it hands out those of a pool for each priority, in turn.
STREAMS_PER_PRIORITY = 32
LEAST_PRIORITY, GREATEST_PRIORITY = 0, -3

_current = _Current()
_asked_for: dict[int, itertools.count[int]] = {}


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


def new_stream_handle(priority: int = 0) -> int:
    """The handle of the next simulated stream of a priority: 1 to 32, then 1 again; 33 to 64 for priority -1."""
    turn = next(_asked_for.setdefault(priority, itertools.count())) % STREAMS_PER_PRIORITY
    return 1 - priority * STREAMS_PER_PRIORITY + turn
