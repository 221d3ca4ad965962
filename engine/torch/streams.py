"""``torch.Stream`` and ``torch.Event``: those of any device. The CPU has no queue: everything is done at once."""

from __future__ import annotations

import importlib
from typing import Any

from stridescope.engine.device import CPU
from stridescope.engine.device import device as torch_device
from stridescope.engine.devices.registry import device_count


def _place(device: Any) -> torch_device:
    """The device that is meant: by default the accelerator where there is one."""
    if device is None:
        return torch_device("cuda") if device_count() else CPU
    place = torch_device("cuda", device) if isinstance(device, int) else torch_device(device)
    if place.type == "cuda" and not device_count():
        raise RuntimeError("PyTorch is not linked with support for cuda devices")
    return place


def _on_cuda(name: str) -> Any:
    """The class of the cuda device's own streams or events."""
    return getattr(importlib.import_module("stridescope.engine.torch.cuda.streams"), name)


class Stream:
    """A queue of work on a device; for the accelerator it is one of its own streams."""

    device: torch_device
    device_index: int
    stream_id: int

    def __new__(cls, device: Any = None, *args: Any, **options: Any) -> Any:
        """The stream of the device that is meant."""
        if cls is not Stream:
            return super().__new__(cls)
        place = _place(device)
        if place.type == "cuda":
            return _on_cuda("Stream")(place, *args, **options)
        made = super().__new__(cls)
        made.device, made.device_index, made.stream_id = place, -1, 0
        return made

    @property
    def device_type(self) -> int:
        """The number of the kind of device: 0 is the CPU, 1 is CUDA."""
        return 1 if self.device.type == "cuda" else 0

    @property
    def native_handle(self) -> int:
        """The handle in the device's own interface."""
        raise RuntimeError("Backend doesn't support getting stream native handle.")

    def query(self) -> bool:
        """Whether the queue is empty."""
        return True

    def synchronize(self) -> None:
        """Wait until the queue is empty."""

    def is_capturing(self) -> bool:
        """Whether a graph is captured on the stream."""
        return False

    def record_event(self, event: Any = None) -> Any:
        """Mark the present end of the queue."""
        raise RuntimeError(f"{self.device.type} backend doesn't support events.")

    def wait_event(self, event: Any) -> None:
        """Let later work wait for an event."""

    def wait_stream(self, stream: Any) -> None:
        """Let later work wait for all present work of another stream."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *failure: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return False
        return (self.stream_id, self.device_index, self.device_type) == (
            other.stream_id, other.device_index, other.device_type,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device_index, self.device_type))

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"
        )


class Event:
    """A mark in a queue; for the accelerator it is one of its own events."""

    device: torch_device | None
    event_id = 0

    def __new__(cls, device: Any = None, *args: Any, **options: Any) -> Any:
        """The event of the device that is meant."""
        if cls is not Event:
            return super().__new__(cls)
        place = _place(device)
        if place.type == "cuda":
            return _on_cuda("Event")(*args, **options)
        made = super().__new__(cls)
        made.device = place
        return made

    def record(self, stream: Any = None) -> None:
        """Mark the present end of a stream's queue."""
        raise RuntimeError(f"{self.device} backend doesn't support events.")

    def query(self) -> bool:
        """Whether all work before the mark is done."""
        return True

    def synchronize(self) -> None:
        """Wait until it is done."""

    def wait(self, stream: Any = None) -> None:
        """Let later work of a stream wait for this event."""

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds between two recorded events."""
        raise ValueError("Both events must be created with argument 'enable_timing=True'.")

    def __repr__(self) -> str:
        return f"torch.Event device_type={self.device}, device_index=-1, event_flag=0, event_id=0"


for _made in (Stream, Event):
    _made.__module__ = "torch"
