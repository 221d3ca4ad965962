"""``torch.cuda.Stream`` and ``torch.cuda.Event``: queues of a device, and marks in them."""

from __future__ import annotations

import ctypes
from typing import Any

from stridescope.engine.device import device as torch_device
from stridescope.engine.devices.clock import SimulatedEvent
from stridescope.engine.devices.registry import device_at, device_count
from stridescope.engine.devices.streams import (
    DEFAULT_STREAM,
    GREATEST_PRIORITY,
    LEAST_PRIORITY,
    current_device_index,
    new_stream_handle,
    set_current_device_index,
    set_current_stream,
)
from stridescope.engine.devices.streams import (
    current_stream as current_handle,
)
from stridescope.engine.torch.cuda.device_index import device_index
from stridescope.engine.torch.streams import Event as AnyEvent
from stridescope.engine.torch.streams import Stream as AnyStream


class Stream(AnyStream):
    """A queue of work on a device. With ``with torch.cuda.stream(s):`` the ops of the block join it."""

    def __init__(self, device: Any = None, priority: int = 0, **found: int) -> None:
        if not device_count():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        if priority > LEAST_PRIORITY:
            raise RuntimeError(f"Expected cuda stream priority to be less than or equal to 0, got {priority}")
        self.device_index = found.get("device_index", device_index(device))
        self._gpu = device_at(self.device_index)
        self.priority = max(GREATEST_PRIORITY, priority)
        handle = found.get("cuda_stream", found.get("stream_id"))
        self.cuda_stream = new_stream_handle(self.priority) if handle is None else handle
        self.device, self.stream_id = torch_device("cuda", self.device_index), self.cuda_stream
        self._contexts: list[StreamContext] = []

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority that a stream can have; smaller numbers go first."""
        return LEAST_PRIORITY, GREATEST_PRIORITY

    def wait_event(self, event: Any) -> None:
        """Let later work of this stream wait for an event; the host goes on at once."""
        event.wait(self)

    def record_event(self, event: Any = None) -> Any:
        """Mark the present end of the queue."""
        event = event or Event()
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether the queue is empty."""
        self._gpu.refuse_while_capturing()
        return self._gpu.record_event(self.cuda_stream).query()

    def synchronize(self) -> None:
        """Wait until the queue is empty."""
        self._gpu.wait_for(self.cuda_stream)

    def is_capturing(self) -> bool:
        """Whether a graph is being captured."""
        return self._gpu.allocator.captures_underway > 0

    @property
    def native_handle(self) -> int:
        """The handle, as CUDA has it."""
        return self.cuda_stream

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of the CUDA stream protocol, and the handle."""
        return 0, self.cuda_stream

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_stream)

    def __enter__(self) -> Stream:
        self._contexts.append(StreamContext(self))
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._contexts.pop().__exit__(*failure)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made; ``stream_ptr`` is its handle."""

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        super().__init__(device, cuda_stream=stream_ptr)


class Event(AnyEvent):
    """A mark in a queue. With ``enable_timing`` two of them measure the time between, on the simulated clock."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if not device_count():
            raise RuntimeError("Tried to instantiate dummy base class Event")
        self.enable_timing = enable_timing
        self.blocking = blocking
        self.interprocess = interprocess
        self.external = external
        self.device: torch_device | None = None
        self._mark: SimulatedEvent | None = None

    def record(self, stream: Any = None) -> None:
        """Mark the present end of a stream's queue; of the current one by default."""
        stream = stream or current_stream()
        if self.device is not None and self.device.index != stream.device_index:
            raise RuntimeError(
                f"Event device {self.device.index} does not match recording stream's device {stream.device_index}."
            )
        self.device = stream.device
        self._mark = device_at(stream.device_index).record_event(stream.cuda_stream)

    def wait(self, stream: Any = None) -> None:
        """Let later work of a stream wait for this event."""
        stream = stream or current_stream()
        if self._mark is not None:
            self._mark.clock.hold_back(stream.cuda_stream, self._mark.time_ns)

    def query(self) -> bool:
        """Whether all work before the mark is done; True for an event that was never recorded."""
        if self._mark is None:
            return True
        self._refuse_while_capturing()
        return self._mark.query()

    def synchronize(self) -> None:
        """Wait until it is done."""
        if self._mark is not None:
            self._refuse_while_capturing()
            self._mark.synchronize()

    def _refuse_while_capturing(self) -> None:
        if self.device is not None and self.device.index is not None:
            device_at(self.device.index).refuse_while_capturing()

    def ipc_handle(self) -> bytes:
        """What another process would open the event with: there is none for a simulated device."""
        raise NotImplementedError("torch.cuda.Event.ipc_handle is not in Stridescope yet")

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds between two recorded events."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._mark is None or end_event._mark is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return float((end_event._mark.time_ns - self._mark.time_ns) / 1e6)

    @property
    def cuda_event(self) -> int:
        """A handle; 0 until it is recorded."""
        return 0 if self._mark is None else id(self._mark)

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>" if self._mark else "<torch.cuda.Event uninitialized>"

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_event)


class StreamContext:
    """While it is open, the ops of this thread join a stream; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: tuple[int, int] = (0, DEFAULT_STREAM)

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self._before = current_device_index(), current_handle(self.stream.device_index)
        set_current_device_index(self.stream.device_index)
        set_current_stream(self.stream.device_index, self.stream.cuda_stream)

    def __exit__(self, *failure: object) -> None:
        if self.stream is not None:
            set_current_stream(self.stream.device_index, self._before[1])
            set_current_device_index(self._before[0])


def stream(stream: Stream | None) -> StreamContext:
    """``with torch.cuda.stream(s):`` lets the ops of the block join ``s``."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Let all later ops of this thread join a stream."""
    if stream is not None:
        set_current_device_index(stream.device_index)
        set_current_stream(stream.device_index, stream.cuda_stream)


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's ops join."""
    index = device_at(device_index(device)).index
    return Stream(device_index=index, cuda_stream=current_handle(index))


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """The stream that another library made, by its handle."""
    return Stream(device_index=device_index(device), cuda_stream=data_ptr)


def default_stream(device: Any = None) -> Stream:
    """The stream that every thread starts on."""
    return Stream(device_index=device_at(device_index(device)).index, cuda_stream=DEFAULT_STREAM)


for _made in (Stream, ExternalStream, Event):
    _made.__module__ = "torch.cuda"
