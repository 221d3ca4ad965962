"""A recorded memory trace run through our allocator: the same choices, or where they differ.

With the recording's own options every step is followed: what the recording released is released, and each block is
compared with the recorded one. With other options or another size only the requests and frees are kept, and the
allocator does what it would have done.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.block import Block, PrivatePool
from stridescope.engine.devices.block_search import best_fit
from stridescope.engine.devices.block_sizes import SMALL_SIZE, round_size
from stridescope.engine.devices.device import DeviceOutOfMemory
from stridescope.engine.devices.out_of_memory import OutOfMemoryError
from stridescope.engine.devices.pools import Pools
from stridescope.engine.devices.recorded_gpu import NO_LIMIT, RecordedGPU, install, open_recorded, take_at
from stridescope.engine.devices.snapshot_file import Entry, Snapshot, SnapshotError
from stridescope.engine.devices.snapshot_history import DEFAULT_POOL, PastSegment, before_trace, pool_id_of
from stridescope.engine.events import Journal

# What PyTorch never uses as a stream handle: stands for "some other stream" in the replay of a deferred free.
OTHER_STREAM = -1
# A failing request asks the device two or three times.
ALL_ATTEMPTS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """An allocation for which our allocator gave another answer than the recording."""

    entry: int
    size: int
    recorded: str
    replayed: str


@dataclasses.dataclass(slots=True)
class Totals:
    """The numbers to compare: bytes held at the worst moment, segments opened or mapped, failures."""

    peak_reserved: int = 0
    segments_opened: int = 0
    out_of_memory: int = 0


class SnapshotReplay:
    """The replay of one device's trace. ``journal`` hears every decision."""

    def __init__(
        self,
        snapshot: Snapshot,
        device: int,
        conf: str | None = None,
        total: int | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.device_index = device
        self.faithful = conf is None and total is None
        self.trace = snapshot.device_traces[device] if device < len(snapshot.device_traces) else []
        self.settings = _settings(snapshot.conf) if conf is None else AllocatorSettings(conf)
        self.gpu = RecordedGPU(NO_LIMIT if total is None else total, self.settings)
        self.allocator = self.gpu.allocator
        self.allocator.log.journal = journal or Journal()
        self.blocks: dict[int, Block] = {}
        self.allocations = self.matching = 0
        self.differences: list[Difference] = []
        self.recorded, self.reserved = Totals(), 0
        self._waiting: dict[int, int] = {}
        self._next_stream, self._number = OTHER_STREAM, 0
        try:
            self._begin(snapshot)
            self._run()
        except (LookupError, AssertionError, DeviceOutOfMemory):
            raise SnapshotError(f"its trace contradicts itself, or its segments, at entry {self._number}") from None

    def _begin(self, snapshot: Snapshot) -> None:
        """Bring our allocator into the state in which the trace began."""
        past = before_trace(snapshot.segments_of(self.device_index), self.trace)
        self.blocks = install(self.allocator, self.gpu, past)
        self.allocator.stats.reset_accumulated()
        self.recorded.peak_reserved = self.reserved = sum(segment.size for segment in past.segments.values())
        for block in past.blocks.values():
            if block.pending and block.address in self.blocks:
                self._free_later(block.address)

    def begins(self, number: int) -> None:
        """Called before an entry of the trace is done; for subclasses."""

    def differs(self, difference: Difference) -> None:
        """Note that our allocator gave another answer."""
        self.differences.append(difference)

    def _run(self) -> None:
        number = 0
        while number < len(self.trace):
            entry, self._number = self.trace[number], number
            self.begins(number)
            if self.faithful and entry.get("addr") in self._waiting and (retry := self._end_of_retry(number)):
                self._expect_retry(number, retry)
                number = retry
                continue
            step = _STEPS.get(entry["action"])
            if step is not None and isinstance(entry.get("addr", 0), int):
                step(self, number, entry)
            number += 1

    def _end_of_retry(self, number: int) -> int:
        """Where the releases of a failed search end, 0 if the entries from ``number`` on are no such releases.

        A search that found nothing waits for pending blocks, gives the cache back and asks the device again, but does
        not search again. So these blocks must not return to the cache before the replay has searched.
        """
        end, released = number, False
        while end < len(self.trace) and self._is_release(self.trace[end]):
            released |= self.trace[end]["action"] != "free_completed"
            end += 1
        request = self.trace[end] if end < len(self.trace) else {"action": ""}
        if released and request["action"] in ("segment_alloc", "segment_map"):
            request = next((entry for entry in self.trace[end:] if entry["action"] == "alloc"), request)
        elif request["action"] != "oom":
            return 0
        # What a search would find now was released on purpose, by empty_cache.
        return 0 if self._finds(request) else end

    def _finds(self, entry: Entry) -> bool:
        """Whether a cached block would serve a request now."""
        size = round_size(entry["size"], self.settings)
        pools = self.allocator.pools
        owner: Pools | PrivatePool = pools.private.get(pool_id_of(entry, "pool_id"), pools)
        return best_fit(owner.small if size <= SMALL_SIZE else owner.large, size, entry["stream"], self.settings) >= 0

    def _is_release(self, entry: Entry) -> bool:
        if entry["action"] == "free_completed":
            return entry.get("addr") in self._waiting
        return entry["action"] in ("segment_free", "segment_unmap")

    def _expect_retry(self, number: int, end: int) -> None:
        """Let the device refuse the coming request once; the allocator then does the releases by itself."""
        for entry in self.trace[number:end]:
            if entry["action"] == "free_completed":
                self.blocks.pop(entry["addr"], None)
                del self._waiting[entry["addr"]]
            else:
                self._count_reserved(-entry["size"])
        self.gpu.refusals = 1

    # One method for each action of the trace

    def _segment_alloc(self, number: int, entry: Entry) -> None:
        self._count_reserved(entry["size"])
        self.recorded.segments_opened += 1
        if self.faithful:
            self.settings.expandable_segments = entry["action"] == "segment_map"
            self.gpu.recorded.append((entry["addr"], entry["size"]))

    def _count_reserved(self, change: int) -> None:
        self.reserved += change
        self.recorded.peak_reserved = max(self.recorded.peak_reserved, self.reserved)

    def _alloc(self, number: int, entry: Entry) -> None:
        self.allocations += 1
        replayed = "out of memory"
        if (block := self._malloc(entry)) is not None:
            self.blocks[entry["addr"]] = block
            replayed = f"{block.address:#x}"
        recorded = f"{entry['addr']:#x}"
        if replayed == recorded:
            self.matching += 1
        elif self.faithful or block is None:
            self.differs(Difference(number, entry["size"], recorded, replayed))
        if self.faithful and replayed != recorded:
            self._follow(entry, block)
        self.gpu.recorded.clear()
        self.gpu.refusals = 0

    def _follow(self, entry: Entry, block: Block | None) -> None:
        """Go on as the recording did, so that one difference does not make others."""
        self.blocks.pop(entry["addr"], None)
        if block is not None:
            self.allocator.free(block)
        if not self.settings.expandable_segments:
            for address, size in self.gpu.recorded:
                pool_id = pool_id_of(entry, "pool_id")
                is_small = round_size(entry["size"], self.settings) <= SMALL_SIZE
                segment = PastSegment(address, size, is_small, entry["stream"], pool_id, False)
                open_recorded(self.allocator, self.gpu, segment)
        if (forced := take_at(self.allocator, entry["addr"], entry["size"])) is not None:
            self.blocks[entry["addr"]] = forced

    def _malloc(self, entry: Entry) -> Block | None:
        pool_id = pool_id_of(entry, "pool_id")
        private = pool_id != DEFAULT_POOL
        if private:
            self.allocator.begin_allocate_to_pool(pool_id, lambda stream: True)
        try:
            return self.allocator.malloc(entry["size"], entry["stream"])
        except OutOfMemoryError:
            return None
        finally:
            if private:
                self.allocator.end_allocate_to_pool(pool_id)

    def _free_requested(self, number: int, entry: Entry) -> None:
        """Free at once if the recording did; else the block waits for a stream that the trace does not name."""
        address = entry["addr"]
        if address not in self.blocks or not self.blocks[address].allocated:
            return
        follower = self.trace[number + 1] if number + 1 < len(self.trace) else entry
        if follower["action"] == "free_completed" and follower.get("addr") == address:
            self.allocator.free(self.blocks[address])
        else:
            self._free_later(address)

    def _free_later(self, address: int) -> None:
        self._next_stream -= 1
        self._waiting[address] = self._next_stream
        self.gpu.set_busy(self._next_stream, True)
        self.allocator.record_stream(self.blocks[address], self._next_stream)
        self.allocator.free(self.blocks[address])

    def _free_completed(self, number: int, entry: Entry) -> None:
        block = self.blocks.pop(entry["addr"], None)
        if (stream := self._waiting.pop(entry["addr"], None)) is not None:
            self.gpu.set_busy(stream, False)
            self.allocator.events.process()
        elif block is not None and block.allocated:
            self.allocator.free(block)  # traces that skip free_requested

    def _segment_free(self, number: int, entry: Entry) -> None:
        self._count_reserved(-entry["size"])
        if self.faithful:
            self._release_recorded(entry)
        elif number == 0 or self.trace[number - 1]["action"] not in ("segment_free", "segment_unmap"):
            self.allocator.empty_cache()

    def _release_recorded(self, entry: Entry) -> None:
        """Release exactly what the recording released, where our allocator has it free too."""
        for block in self.allocator.pools.free_blocks():
            if block.address <= entry["addr"] < block.address + block.size:
                if block.expandable is not None:
                    self.allocator.source.expandable.release(block)
                elif not block.is_split:
                    self.allocator.source.release(block)
                return

    def _oom(self, number: int, entry: Entry) -> None:
        self.recorded.out_of_memory += 1
        self.gpu.refusals = ALL_ATTEMPTS if self.faithful else 0
        if (block := self._malloc(entry)) is not None:
            self.differs(Difference(number, entry["size"], "out of memory", f"{block.address:#x}"))
            self.allocator.free(block)
        self.gpu.refusals = 0

    # The outcome

    def totals(self) -> tuple[Totals, Totals]:
        """The numbers of the recording and of the replay."""
        stats = self.allocator.stats
        return self.recorded, Totals(stats.all.reserved_bytes.peak, stats.num_device_alloc, stats.num_ooms)

    def result(self) -> dict[str, Any]:
        """The comparison as plain data."""
        recorded, replayed = self.totals()
        return {
            "device": self.device_index,
            "entries": len(self.trace),
            "actions": dict(Counter(entry["action"] for entry in self.trace)),
            "allocations": self.allocations,
            "same_block": self.matching,
            "differences": [dataclasses.asdict(difference) for difference in self.differences],
            "recorded": dataclasses.asdict(recorded),
            "replayed": dataclasses.asdict(replayed),
        }


def _settings(conf: str) -> AllocatorSettings:
    try:
        return AllocatorSettings(conf)
    except (ValueError, LookupError, RuntimeError) as error:
        why = " ".join(str(error).split())
        raise SnapshotError(f"its options {conf[:80]!r} are none of PyTorch's: {why}") from None


Step = Callable[[SnapshotReplay, int, Entry], None]

_STEPS: dict[str, Step] = {
    "alloc": SnapshotReplay._alloc,
    "free_requested": SnapshotReplay._free_requested,
    "free_completed": SnapshotReplay._free_completed,
    "segment_alloc": SnapshotReplay._segment_alloc,
    "segment_map": SnapshotReplay._segment_alloc,
    "segment_free": SnapshotReplay._segment_free,
    "segment_unmap": SnapshotReplay._segment_free,
    "oom": SnapshotReplay._oom,
}
