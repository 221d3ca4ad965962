"""Written-down allocator calls, run through our allocator: what each gave, and the segments and statistics at the end.

A trace is a dict with ``ops`` such as ``["alloc", name, bytes, stream]``; ``OPERATIONS`` lists them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.devices.address_space import VIRTUAL_RANGES
from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.block import Block, PoolId
from stridescope.engine.devices.clock import SimulatedClock, SimulatedEvent
from stridescope.engine.devices.out_of_memory import OutOfMemoryError
from stridescope.engine.devices.simulated import SimulatedGPU
from stridescope.engine.devices.snapshot import memory_snapshot


class HeldEvent(SimulatedEvent):
    """An event on a stream that the trace keeps busy: done when the stream turns idle, or when it is waited for."""

    __slots__ = ("done",)

    def __init__(self, clock: SimulatedClock, stream: int) -> None:
        super().__init__(clock, stream)
        self.done = False

    def query(self) -> bool:
        """Whether the stream has turned idle since."""
        return self.done

    def synchronize(self) -> None:
        """Waiting makes it done, although the stream stays busy for later events."""
        self.done = True


class ScriptedGPU(SimulatedGPU):
    """A simulated GPU whose streams are busy when a trace says so."""

    def __init__(self, size: int, settings: AllocatorSettings) -> None:
        super().__init__(size, settings=settings)
        self._held: dict[int, list[HeldEvent]] = {}

    def set_busy(self, stream: int, busy: bool) -> None:
        """Let a stream have endless work, or finish it."""
        if busy:
            self._held.setdefault(stream, [])
            return
        for event in self._held.pop(stream, []):
            event.done = True

    def memory_refused(self, size: int) -> None:
        """Nothing is logged: no script runs."""

    def record_event(self, stream: int) -> SimulatedEvent:
        """Mark the end of a stream's queue."""
        if stream not in self._held:
            return super().record_event(stream)
        event = HeldEvent(self.clock, stream)
        self._held[stream].append(event)
        return event


class TraceReplay:
    """One trace on a device of its own."""

    def __init__(self, trace: dict[str, Any], conf: str | None = None, total: int | None = None) -> None:
        self.id = trace["id"]
        settings = AllocatorSettings(trace.get("conf", "") if conf is None else conf)
        self.device = ScriptedGPU(trace["total"] if total is None else total, settings)
        self.allocator = self.device.allocator
        if trace.get("fraction", 1.0) < 1.0:
            self.allocator.set_memory_fraction(trace["fraction"])
        self.blocks: dict[str, Block] = {}
        self.addresses: dict[str, str] = {}
        self.pools: dict[str, PoolId] = {}
        for op in trace["ops"]:
            OPERATIONS[op[0]][0](self, *op[1:])

    def alloc(self, name: str, size: int, stream: int) -> None:
        """Ask for memory; the address or the kind of the error is noted."""
        try:
            block = self.allocator.malloc(size, stream)
        except OutOfMemoryError:
            self.addresses[name] = "oom"
            return
        self.blocks[name] = block
        self.addresses[name] = self.place(block.address)

    def free(self, name: str) -> None:
        """Give it back; what was never had is skipped, as freeing null is."""
        if (block := self.blocks.pop(name, None)) is not None:
            self.allocator.free(block)

    def record(self, name: str, stream: int) -> None:
        """Another stream uses the memory."""
        if (block := self.blocks.get(name)) is not None:
            self.allocator.record_stream(block, stream)

    def busy(self, stream: int, busy: int) -> None:
        """Let a stream have work, or none."""
        self.device.set_busy(stream, bool(busy))

    def empty(self) -> None:
        """``torch.cuda.empty_cache()``."""
        self.allocator.empty_cache()

    def reset_peak(self) -> None:
        """``torch.cuda.reset_peak_memory_stats()``."""
        self.allocator.stats.reset_peak()

    def reset_accumulated(self) -> None:
        """``torch.cuda.reset_accumulated_memory_stats()``."""
        self.allocator.stats.reset_accumulated()

    def pool(self, name: str, no_split: int, use_on_oom: int) -> None:
        """Make a private pool."""
        self.pools[name] = (0, len(self.pools) + 1)
        self.allocator.create_pool(self.pools[name], bool(no_split), bool(use_on_oom))

    def enter(self, name: str) -> None:
        """Begin ``use_mem_pool``."""
        self.allocator.begin_allocate_to_pool(self.pools[name], lambda stream: True)

    def exit(self, name: str) -> None:
        """End ``use_mem_pool``."""
        self.allocator.end_allocate_to_pool(self.pools[name])
        self.allocator.release_pool(self.pools[name])

    def delete_pool(self, name: str) -> None:
        """Drop the ``MemPool`` object."""
        self.allocator.release_pool(self.pools[name])
        self.allocator.empty_cache(self.pools[name])

    def place(self, address: int) -> str:
        """An address as traces write it: from the first device address, or V and the virtual offset."""
        if address >= VIRTUAL_RANGES:
            return f"V{address - self.device.memory.virtual_base}"
        return str(address - self.device.memory.device_base) if address else "0"

    def result(self) -> dict[str, Any]:
        """Addresses, segments and statistics in the form of a trace's ``expect``."""
        stats = self.allocator.stats.flat().items()
        told = {
            key: value for key, value in stats if value and not key.startswith(("max_split_size", "reserved_bytes_by"))
        }
        segments = [self._segment(segment) for segment in memory_snapshot(self.allocator)]
        return {"id": self.id, "addresses": self.addresses, "segments": segments, "stats": told}

    def _segment(self, segment: dict[str, Any]) -> dict[str, Any]:
        return {
            "at": self.place(segment["address"]),
            "size": segment["total_size"],
            "type": segment["segment_type"],
            "stream": segment["stream"],
            "pool": segment["segment_pool_id"][1],
            "allocated": segment["allocated_size"],
            "active": segment["active_size"],
            "requested": segment["requested_size"],
            "blocks": [
                [block["size"], None if block["state"] == "inactive" else block["requested_size"], block["state"]]
                for block in segment["blocks"]
            ],
        }


# Each operation with the types of its arguments.
OPERATIONS: dict[str, tuple[Callable[..., None], tuple[type, ...]]] = {
    "alloc": (TraceReplay.alloc, (str, int, int)),
    "free": (TraceReplay.free, (str,)),
    "record": (TraceReplay.record, (str, int)),
    "busy": (TraceReplay.busy, (int, int)),
    "empty": (TraceReplay.empty, ()),
    "reset_peak": (TraceReplay.reset_peak, ()),
    "reset_acc": (TraceReplay.reset_accumulated, ()),
    "pool": (TraceReplay.pool, (str, int, int)),
    "enter": (TraceReplay.enter, (str,)),
    "exit": (TraceReplay.exit, (str,)),
    "delpool": (TraceReplay.delete_pool, (str,)),
}
