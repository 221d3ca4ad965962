"""Freed blocks that other streams may still use: they wait for events before they return to the cache."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from stridescope.engine.devices.allocator_log import AllocatorLog
from stridescope.engine.devices.block import Block, PoolId
from stridescope.engine.devices.device import Device, DeviceEvent

Waiting = tuple[DeviceEvent, Block, int]


class StreamEvents:
    """The queues of outstanding events, one per stream. ``complete`` takes back a block that waits no more."""

    def __init__(self, device: Device, log: AllocatorLog, complete: Callable[[Block], None]) -> None:
        self._device = device
        self._log = log
        self._complete = complete
        self._number = 0
        self.queues: dict[int, deque[Waiting]] = {}
        self.deferred: list[Block] = []
        self.captured_uses: dict[Block, set[int]] = {}

    def record(self, block: Block) -> None:
        """Mark every stream that uses the block, and let the block wait for the marks."""
        uses, block.stream_uses = block.stream_uses or {}, None
        for stream in uses:
            self._number += 1
            event = self._device.record_event(stream)
            block.event_count += 1
            self.queues.setdefault(stream, deque()).append((event, block, self._number))
            self._log.awaits_event(block, stream, self._number)

    def defer(self, block: Block) -> None:
        """Keep a block freed during a graph capture, when no event may be recorded."""
        self.deferred.append(block)
        self._log.awaits_event(block, 0, 0)

    def use_while_capturing(self, block: Block, stream: int) -> None:
        """Remember that a stream's use was recorded inside a capture, which joins its streams at its end."""
        self.captured_uses.setdefault(block, set()).add(stream)

    def _record_deferred(self) -> None:
        deferred, self.deferred = self.deferred, []
        for block in deferred:
            for stream in self.captured_uses.pop(block, ()):
                if block.stream_uses is not None:
                    block.stream_uses.pop(stream, None)
            self.record(block)
            if block.event_count == 0:
                self._complete(block)

    def process(self) -> None:
        """Take back the blocks whose events are done. Within a stream no event overtakes an earlier one."""
        if self.deferred:
            self._record_deferred()
        for stream in list(self.queues):
            queue = self.queues[stream]
            while queue and queue[0][0].query():
                self._passed(stream, queue.popleft())
            if not queue:
                del self.queues[stream]

    def synchronize(self, pool_id: PoolId | None = None) -> None:
        """Wait for all events, or for those of one private pool's blocks."""
        if self.deferred:
            self._record_deferred()
        for stream in list(self.queues):
            waiting, self.queues[stream] = self.queues[stream], deque()
            for entry in waiting:
                if pool_id is not None and entry[1].pool.id != pool_id:
                    self.queues[stream].append(entry)
                    continue
                entry[0].synchronize()
                self._passed(stream, entry)
            if not self.queues[stream]:
                del self.queues[stream]

    def _passed(self, stream: int, entry: Waiting) -> None:
        _, block, number = entry
        block.event_count -= 1
        self._log.event_passed(block, stream, number)
        if block.event_count == 0:
            self._complete(block)
