"""The simulated time of a GPU: one clock for the host, one queue for each stream.

Work joins a queue and the host goes on at once; it begins when the queue is free. Time passes only through what the
script does (launches, copies, waits, questions), so that a run gives the same times every time.
"""

from __future__ import annotations

# What a question about an event costs the host. It also lets a script that polls an event come to an end.
QUERY_NS = 500


class SimulatedClock:
    """Nanoseconds since the device was made."""

    def __init__(self) -> None:
        self.host_ns = 0
        self._busy_until: dict[int, int] = {}

    def spend(self, nanoseconds: int) -> None:
        """The host is occupied for a while."""
        self.host_ns += nanoseconds

    def enqueue(self, stream: int, duration_ns: int) -> tuple[int, int]:
        """Add work to a queue; returns when it begins and ends."""
        begin = max(self.host_ns, self._busy_until.get(stream, 0))
        self._busy_until[stream] = begin + duration_ns
        return begin, begin + duration_ns

    def end_of(self, stream: int) -> int:
        """When the queue of a stream will be empty."""
        return max(self.host_ns, self._busy_until.get(stream, 0))

    def hold_back(self, stream: int, until_ns: int) -> None:
        """Let the later work of a stream begin no earlier than ``until_ns``."""
        self._busy_until[stream] = max(until_ns, self._busy_until.get(stream, 0))

    def wait_until(self, nanoseconds: int) -> None:
        """The host waits."""
        self.host_ns = max(self.host_ns, nanoseconds)

    def streams(self) -> list[int]:
        """The streams that ever had work."""
        return list(self._busy_until)


class SimulatedEvent:
    """A mark at the end of a stream's queue at the moment of recording."""

    __slots__ = ("clock", "stream", "time_ns")

    def __init__(self, clock: SimulatedClock, stream: int) -> None:
        self.clock = clock
        self.stream = stream
        self.time_ns = clock.end_of(stream)

    def query(self) -> bool:
        """Whether the stream has passed the mark."""
        self.clock.spend(QUERY_NS)
        return self.time_ns <= self.clock.host_ns

    def synchronize(self) -> None:
        """Wait until it has."""
        self.clock.wait_until(self.time_ns)
