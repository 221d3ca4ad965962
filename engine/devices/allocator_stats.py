"""The statistics of the caching allocator, in PyTorch's arrays and under PyTorch's keys."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from stridescope.engine.devices.allocator_settings import as_signed

ARRAYS = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)
SCALARS = (
    "num_alloc_retries",
    "num_ooms",
    "num_oom_rejections",
    "num_sync_all_streams",
    "num_device_alloc",
    "num_device_free",
)


class Stat:
    """One counted quantity. A decrease only lowers ``current``; what was freed follows from the others."""

    __slots__ = ("allocated", "base", "current", "peak")

    def __init__(self) -> None:
        self.current = self.peak = self.allocated = 0
        self.base = 0  # the current value when the totals were last zeroed

    def increase(self, amount: int) -> None:
        """Add to the current value and to the total; the peak follows."""
        self.allocated += amount
        self.current += amount
        if self.current > self.peak:
            self.peak = self.current

    def decrease(self, amount: int) -> None:
        """Take away from the current value."""
        self.current -= amount

    @property
    def freed(self) -> int:
        """The sum of all decreases since the totals were last zeroed."""
        return self.base + self.allocated - self.current

    def reset_accumulated(self) -> None:
        """Zero the totals."""
        self.allocated, self.base = 0, self.current

    def reset_peak(self) -> None:
        """Let the peak start again from the current value."""
        self.peak = self.current

    def as_dict(self) -> dict[str, int]:
        """The four members under PyTorch's names."""
        return {"current": self.current, "peak": self.peak, "allocated": self.allocated, "freed": self.freed}


class PoolStats:
    """The nine arrays, for one of "all", "small_pool" and "large_pool"."""

    __slots__ = ARRAYS

    allocation: Stat
    segment: Stat
    active: Stat
    inactive_split: Stat
    allocated_bytes: Stat
    reserved_bytes: Stat
    active_bytes: Stat
    inactive_split_bytes: Stat
    requested_bytes: Stat

    def __init__(self) -> None:
        for name in ARRAYS:
            setattr(self, name, Stat())

    def hand_out(self, size: int, requested: int) -> None:
        """A block goes to the user. Written out, for this is done for every request."""
        for stat in (self.allocation, self.active):
            stat.allocated += 1
            stat.current += 1
            if stat.current > stat.peak:
                stat.peak = stat.current
        for stat in (self.allocated_bytes, self.active_bytes):
            stat.allocated += size
            stat.current += size
            if stat.current > stat.peak:
                stat.peak = stat.current
        self.requested_bytes.increase(requested)

    def request_free(self, size: int) -> None:
        """The user gives a block back."""
        self.allocation.current -= 1
        self.allocated_bytes.current -= size

    def complete_free(self, size: int, requested: int) -> None:
        """The block's memory may be used again."""
        self.active.current -= 1
        self.active_bytes.current -= size
        self.requested_bytes.current -= requested

    def change_inactive_split(self, count: int, size: int) -> None:
        """Apply the net change of the free pieces of split segments."""
        stat = self.inactive_split
        stat.current += count
        if count > 0:
            stat.allocated += count
            if stat.current > stat.peak:
                stat.peak = stat.current
        stat = self.inactive_split_bytes
        stat.current += size
        if size > 0:
            stat.allocated += size
            if stat.current > stat.peak:
                stat.peak = stat.current

    def stats(self) -> list[Stat]:
        """All nine, in the order of ``ARRAYS``."""
        return [getattr(self, name) for name in ARRAYS]


class ReservedByPool:
    """The reserved bytes of one private pool, for all, small and large."""

    __slots__ = ("all", "large_pool", "small_pool")

    def __init__(self) -> None:
        self.all, self.small_pool, self.large_pool = Stat(), Stat(), Stat()

    def stats(self) -> dict[str, Stat]:
        """The three under PyTorch's names."""
        return {"all": self.all, "small_pool": self.small_pool, "large_pool": self.large_pool}


class AllocatorStats:
    """All statistics of one device's allocator."""

    def __init__(self, max_split_size: int) -> None:
        self.all, self.small_pool, self.large_pool = PoolStats(), PoolStats(), PoolStats()
        self.oversize_allocations, self.oversize_segments = Stat(), Stat()
        self.num_alloc_retries = self.num_ooms = self.num_oom_rejections = 0
        self.num_sync_all_streams = self.num_device_alloc = self.num_device_free = 0
        self.by_private_pool: dict[tuple[int, int], ReservedByPool] = {}
        # PyTorch reports the value of the moment when the allocator was made, not that of later settings.
        self.max_split_size = as_signed(max_split_size)

    def pools(self) -> dict[str, PoolStats]:
        """The three columns under PyTorch's names."""
        return {"all": self.all, "small_pool": self.small_pool, "large_pool": self.large_pool}

    def of(self, is_small: bool) -> tuple[PoolStats, PoolStats]:
        """The two columns that a change in a small or large pool moves."""
        return self.all, self.small_pool if is_small else self.large_pool

    def reserve(self, size: int, is_small: bool, pool_id: tuple[int, int] | None) -> None:
        """``size`` bytes more (or fewer, when negative) are held from the device."""
        stats = [column.reserved_bytes for column in self.of(is_small)]
        if pool_id is not None:
            private = self.by_private_pool.setdefault(pool_id, ReservedByPool())
            stats += [private.all, private.small_pool if is_small else private.large_pool]
        for stat in stats:
            if size > 0:
                stat.increase(size)
            else:
                stat.decrease(-size)

    def _every_stat(self) -> list[Stat]:
        stats = [self.oversize_allocations, self.oversize_segments]
        for column in self.pools().values():
            stats += column.stats()
        for private in self.by_private_pool.values():
            stats += private.stats().values()
        return stats

    def reset_peak(self) -> None:
        """Let every peak start again from the current value."""
        for stat in self._every_stat():
            stat.reset_peak()

    def reset_accumulated(self) -> None:
        """Zero every total and the scalars that count."""
        for stat in self._every_stat():
            stat.reset_accumulated()
        for name in SCALARS:
            setattr(self, name, 0)

    def nested(self) -> dict[str, Any]:
        """The statistics as ``memory_stats_as_nested_dict`` gives them."""
        result: dict[str, Any] = {name: getattr(self, name) for name in (*SCALARS, "max_split_size")}
        for array in ARRAYS:
            result[array] = {name: getattr(column, array).as_dict() for name, column in self.pools().items()}
        result["oversize_allocations"] = self.oversize_allocations.as_dict()
        result["oversize_segments"] = self.oversize_segments.as_dict()
        if self.by_private_pool:
            result["reserved_bytes_by_private_pools"] = {
                pool_id: {name: stat.as_dict() for name, stat in private.stats().items()}
                for pool_id, private in self.by_private_pool.items()
            }
        return result

    def flat(self) -> OrderedDict[str, int]:
        """The statistics as ``memory_stats`` gives them, sorted by key."""
        return flatten(self.nested())


def flatten(nested: dict[str, Any]) -> OrderedDict[str, int]:
    """Nested statistics with one key a number, sorted; a pool's id is joined by an underscore."""
    found: dict[str, int] = {}
    _flatten("", nested, found)
    return OrderedDict(sorted(found.items()))


def _flatten(prefix: str, value: Any, found: dict[str, int]) -> None:
    if not isinstance(value, dict):
        found[prefix] = value
        return
    for key, inner in value.items():
        name = "_".join(map(str, key)) if isinstance(key, tuple) else key
        _flatten(f"{prefix}.{name}" if prefix else name, inner, found)
