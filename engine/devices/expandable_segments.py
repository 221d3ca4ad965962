"""Expandable segments: reserved ranges of virtual addresses that get memory page by page."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from stridescope.engine.devices.allocator_log import AllocatorLog
from stridescope.engine.devices.block import Block, BlockPool, Reservation
from stridescope.engine.devices.coalescing import absorb
from stridescope.engine.devices.device import Device


class ExpandableSegments:
    """Grows and shrinks the reservations. ``account`` is told the bytes won or lost, and for which pool."""

    def __init__(self, device: Device, account: Callable[[int, BlockPool], None], log: AllocatorLog) -> None:
        self._device = device
        self._account = account
        self._log = log

    def allocate(self, pool: BlockPool, stream: int, size: int, page: int, stack: Any) -> Block | None:
        """A mapped free block of at least ``size`` bytes, taken out of its pool; raises DeviceOutOfMemory."""
        candidate = _find_room(pool, stream, size) or self._reserve(pool, stream, page)
        if not candidate.mapped:
            self._map(candidate, min(candidate.size, size), stack)
        while candidate.size < size:
            tail = candidate.next
            assert tail is not None, "the room found for the request ends before it is filled"
            self._map(tail, min(size - candidate.size, tail.size), stack)
            candidate = tail  # it has absorbed the free block before it
        pool.remove(candidate)
        return candidate

    def _reserve(self, pool: BlockPool, stream: int, page: int) -> Block:
        """Reserve a range an eighth larger than the device, so that it never runs out of addresses."""
        total = self._device.properties.total_memory
        size = -(-(total + total // 8) // page) * page
        reservation = Reservation(self._device.reserve_range(size), size, page, stream)
        block = Block(reservation.address, size, stream, pool)
        block.expandable, block.mapped = reservation, False
        pool.insert_unmapped(block)
        return block

    def _map(self, block: Block, size: int, stack: Any) -> None:
        """Put memory behind the first ``size`` bytes of an unmapped block and join it to its free neighbours."""
        reservation, pool = block.expandable, block.pool
        assert reservation is not None
        address, mapped = block.address, -(-size // reservation.page) * reservation.page
        self._device.map_pages(address, mapped, reservation.page)
        pool.remove_unmapped(block)
        block.mapped = True
        if mapped < block.size:
            self._leave_unmapped(block, mapped)
        self._log.segment_mapped(address, mapped, block, stack)
        if self._join(block):
            self._log.merged(block)
        pool.insert(block)
        self._account(mapped, pool)
        if block.prev is None and block.segment_stack is None:
            block.segment_stack = stack

    def _leave_unmapped(self, block: Block, mapped: int) -> None:
        rest = Block(block.address + mapped, block.size - mapped, block.stream, block.pool)
        rest.expandable, rest.mapped = block.expandable, False
        rest.insert_after(block)
        block.size = mapped
        block.pool.insert_unmapped(rest)

    def _join(self, block: Block) -> int:
        return absorb(block, block.prev) + absorb(block, block.next)

    def release(self, block: Block) -> int:
        """Take the memory from the pages that lie wholly in a free block; returns the bytes."""
        reservation, pool = block.expandable, block.pool
        assert reservation is not None
        page, base = reservation.page, reservation.address
        begin = base + -(-(block.address - base) // page) * page
        end = base + (block.address + block.size - base) // page * page
        if begin >= end:
            return 0
        self._device.synchronize_stream(reservation.stream)
        self._device.unmap_pages(begin, end - begin)
        self._keep_edges(block, begin, end)
        self._log.segment_unmapped(begin, end - begin, block.stream, pool.id)
        self._join(block)
        pool.insert_unmapped(block)
        self._account(begin - end, pool)
        if not block.is_split:
            pool.remove_unmapped(block)
            self._device.release_range(base)
        return end - begin

    def _keep_edges(self, block: Block, begin: int, end: int) -> None:
        """What lies before and after the unmapped pages stays free; the block becomes the unmapped middle."""
        pool = block.pool
        pool.remove(block)
        before, after = begin - block.address, block.address + block.size - end
        if before:
            edge = Block(block.address, before, block.stream, pool)
            edge.expandable = block.expandable
            edge.insert_before(block)
            pool.insert(edge)
        if after:
            edge = Block(end, after, block.stream, pool)
            edge.expandable = block.expandable
            edge.insert_after(block)
            pool.insert(edge)
        block.address, block.size, block.mapped = begin, end - begin, False


def _find_room(pool: BlockPool, stream: int, size: int) -> Block | None:
    """The first free or unmapped block from where ``size`` bytes can be had without a gap."""
    for owner, _, unmapped in pool.unmapped[bisect_left(pool.unmapped, (stream,)) :]:
        if owner != stream:
            return None
        start = unmapped.prev if unmapped.prev is not None and unmapped.prev.is_free else unmapped
        if _room_from(start, size) >= size:
            return start
    return None


def _room_from(start: Block, enough: int) -> int:
    room, block = 0, start
    while room < enough and block is not None and block.is_free:
        room += block.size
        block = block.next  # type: ignore[assignment]
    return room
