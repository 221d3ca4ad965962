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
