"""Memory events: what the caching allocator decides."""

from __future__ import annotations

from stridescope.engine.events.base import Event


class SegmentAllocated(Event, family="memory"):
    """The allocator takes a segment of {size} bytes from the device, for the {pool} pool."""

    device: str
    address: int
    size: int
    pool: str
    stream: int


class SegmentFreed(Event, family="memory"):
    """The allocator gives a segment of {size} bytes back to the device."""

    device: str
    address: int
    size: int


class BlockRequested(Event, family="memory"):
    """{size} bytes are asked for; rounded they are {rounded}, from the {pool} pool."""

    device: str
    size: int
    rounded: int
    pool: str
    stream: int


class BlockConsidered(Event, family="memory"):
    """The free block of {size} bytes: {verdict}."""

    device: str
    address: int
    size: int
    verdict: str


class BlockSplit(Event, family="memory"):
    """A free block of {size} bytes is cut: {kept} are handed out, the rest stays free."""

    device: str
    address: int
    size: int
    kept: int
    reason: str


class BlockAllocated(Event, family="memory"):
    """A block of {size} bytes is handed out."""

    device: str
    address: int
    size: int
    requested: int
    stream: int
    storage: int


class BlockFreed(Event, family="memory"):
    """A block of {size} bytes goes back to the cache."""

    device: str
    address: int
    size: int


class BlockMerged(Event, family="memory"):
    """Free neighbours become one free block of {size} bytes."""

    device: str
    address: int
    size: int


class BlockAwaitsEvent(Event, family="memory"):
    """The block is freed, but stream {stream} may still use it."""

    device: str
    address: int
    stream: int
    event: int


class CacheFlushed(Event, family="memory"):
    """The cache gives back {freed} bytes: {reason}."""

    device: str
    freed: int
    reason: str


class OutOfMemory(Event, family="memory"):
    """{requested} bytes cannot be had: {message}"""

    device: str
    requested: int
    message: str


class SegmentMapped(Event, family="memory"):
    """An expandable segment grows: {size} bytes of it now have memory, for the {pool} pool."""

    device: str
    address: int
    size: int
    pool: str
    stream: int
    reservation: int


class SegmentUnmapped(Event, family="memory"):
    """An expandable segment shrinks: {size} bytes of it go back to the device."""

    device: str
    address: int
    size: int


class BlockKeptWhole(Event, family="memory"):
    """The free block of {size} bytes is handed out whole: {reason}."""

    device: str
    address: int
    size: int
    reason: str


class StreamRecorded(Event, family="memory"):
    """Stream {stream} uses the block too: freeing it will have to wait for that stream."""

    device: str
    address: int
    stream: int


class BlockEventPassed(Event, family="memory"):
    """Stream {stream} has passed the event that the block waited for."""

    device: str
    address: int
    stream: int
    event: int


class DeviceRefused(Event, family="memory"):
    """The device gives no segment of {size} bytes: {reason}."""

    device: str
    size: int
    reason: str
    retry: bool


class WorkQueued(Event, family="memory"):
    """{work} joins the queue of stream {stream}; the host goes on at once."""

    device: str
    stream: int
    work: str
    host_ns: int
    begin_ns: int
    end_ns: int


class HostWaited(Event, family="memory"):
    """The host waits for stream {stream}."""

    device: str
    stream: int
    host_ns: int
    until_ns: int
