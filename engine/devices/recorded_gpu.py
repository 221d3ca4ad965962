"""A device that hands out the addresses a snapshot's trace recorded, and our allocator in the state it began in."""

from __future__ import annotations

from collections import deque

from stridescope.engine.devices.address_space import AddressSpace
from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.block import Block, BlockPool, Reservation
from stridescope.engine.devices.block_sizes import SMALL_BUFFER, SMALL_SIZE, round_size
from stridescope.engine.devices.caching_allocator import CachingAllocator
from stridescope.engine.devices.coalescing import cut
from stridescope.engine.devices.device import DeviceOutOfMemory
from stridescope.engine.devices.snapshot_history import Past, PastBlock, PastSegment
from stridescope.engine.devices.trace_replay import ScriptedGPU

# More than any GPU has: without a given size the device never refuses by itself.
NO_LIMIT = 1 << 42
# The stretch of addresses for what no recording has: a device number above all real ones.
UNRECORDED = 16


class RecordedGPU(ScriptedGPU):
    """Gives the recorded addresses while they last, then addresses that no recording has."""

    def __init__(self, total: int, settings: AllocatorSettings) -> None:
        super().__init__(total, settings)
        self.memory = AddressSpace(total, UNRECORDED)
        self.recorded: deque[tuple[int, int]] = deque()
        self.refusals = 0
        self._from_recording: dict[int, int] = {}

    def cuda_malloc(self, size: int) -> int:
        """The next recorded segment, if it has this size."""
        self._refuse()
        if not self.recorded or self.recorded[0][1] != size:
            return super().cuda_malloc(size)
        self.memory.occupy(size)
        address, _ = self.recorded.popleft()
        self._from_recording[address] = size
        return address

    def _refuse(self) -> None:
        """Say no as often as the recording's device did."""
        if self.refusals:
            self.refusals -= 1
            raise DeviceOutOfMemory

    def hold(self, address: int, size: int) -> None:
        """Count memory that was taken before the trace began."""
        self.memory.occupy(size)
        self._from_recording[address] = size

    def cuda_free(self, address: int) -> None:
        """Give back what the recording or the device itself gave."""
        size = self._from_recording.pop(address, None)
        if size is None:
            super().cuda_free(address)
        else:
            self.memory.vacate(size)

    def reserve_range(self, size: int) -> int:
        """The recorded address of the range's first mapping, if there is one."""
        return self.recorded[0][0] if self.recorded else super().reserve_range(size)

    def map_pages(self, address: int, size: int, page: int) -> None:
        """Map, and note that the recording's mapping has been used up."""
        self._refuse()
        super().map_pages(address, size, page)
        if self.recorded and self.recorded[0] == (address, size):
            self.recorded.popleft()


def install(allocator: CachingAllocator, device: RecordedGPU, past: Past) -> dict[int, Block]:
    """Put the allocator into a past state; returns the blocks in use by address."""
    used: dict[int, Block] = {}
    addresses = sorted(past.blocks)
    for segment in sorted(past.segments.values(), key=lambda segment: segment.address):
        end = segment.address + segment.size
        inside = [past.blocks[address] for address in addresses if segment.address <= address < end]
        whole = _install_segment(allocator, device, segment)
        for block in _fill(allocator, whole, inside):
            used[block.address] = block
    return used


def _install_segment(allocator: CachingAllocator, device: RecordedGPU, segment: PastSegment) -> Block:
    pools = allocator.pools
    owner = pools if segment.pool_id == (0, 0) else pools.private.get(segment.pool_id) or pools.use(segment.pool_id)
    pool = owner.small if segment.is_small else owner.large
    block = Block(segment.address, segment.size, segment.stream, pool)
    device.hold(segment.address, segment.size)
    if segment.is_expandable:
        _install_range(allocator, block)
    else:
        for column in pool.stats:
            column.segment.increase(1)
        allocator.log.segment_allocated(block, None)
    allocator.source.account(block.size, pool)
    return block


def _install_range(allocator: CachingAllocator, block: Block) -> None:
    """Give a mapped stretch a reservation of its own, with room to grow behind it."""
    page = SMALL_BUFFER if block.pool.is_small else allocator.settings.large_segment_size
    block.expandable = Reservation(block.address, NO_LIMIT, page, block.stream)
    tail = Block(block.address + block.size, NO_LIMIT - block.size, block.stream, block.pool)
    tail.expandable, tail.mapped = block.expandable, False
    tail.insert_after(block)
    block.pool.insert_unmapped(tail)
    allocator.log.segment_mapped(block.address, block.size, block, None)


def _fill(allocator: CachingAllocator, free: Block, inside: list[PastBlock]) -> list[Block]:
    """Cut the blocks in use out of a free segment; what remains goes to the pool."""
    used: list[Block] = []
    end = free.address + free.size
    free.pool.insert(free)
    for number, past in enumerate(inside):
        if past.address < free.address or past.address >= end:
            continue  # the file contradicts itself: two blocks overlap
        stop = inside[number + 1].address if number + 1 < len(inside) else end
        if past.address > free.address:
            _cut_at(allocator, free, past.address - free.address, keep=True)
        size = _size_of(past, stop, free.pool, allocator.settings)
        filled = size >= free.size
        used.append(_take(allocator, free, size, past.requested))
        if filled:
            break
    _count_inactive_split(allocator, free)
    return used


def _count_inactive_split(allocator: CachingAllocator, head: Block) -> None:
    """Count the free blocks of a segment that is cut."""
    while head.prev is not None:
        head = head.prev
    block: Block | None = head
    while block is not None:
        if block.is_free and block.is_split and block.expandable is None:
            for column in block.pool.stats:
                column.change_inactive_split(1, block.size)
        block = block.next


def _size_of(past: PastBlock, stop: int, pool: BlockPool, settings: AllocatorSettings) -> int:
    """The size of a block of which perhaps only the request is known, when the next thing in use is at ``stop``."""
    room = stop - past.address
    size = past.size or round_size(past.requested, settings)
    # In the large pool a gap of up to 1 MiB is never a block: it is the slack of the one before it.
    if not past.size and not pool.is_small and room - size <= SMALL_SIZE:
        return room
    return min(size, room)


def _cut_at(allocator: CachingAllocator, free: Block, size: int, keep: bool) -> Block:
    allocator.log.split(free, size, "as recorded")
    free.pool.remove(free)
    low = cut(free, size)
    if keep:
        free.pool.insert(low)
    return low


def _take(allocator: CachingAllocator, free: Block, size: int, requested: int) -> Block:
    """Hand out the low end of the free block, or all of it."""
    if size < free.size:
        block = _cut_at(allocator, free, size, keep=False)
    else:
        block = free
        free.pool.remove(free)
    allocator.hand_over(block, requested)
    return block


def open_recorded(allocator: CachingAllocator, device: RecordedGPU, segment: PastSegment) -> None:
    """Open a segment that the recording opened and our allocator did not ask for."""
    block = _install_segment(allocator, device, segment)
    block.pool.insert(block)


def take_at(allocator: CachingAllocator, address: int, requested: int) -> Block | None:
    """Hand out the memory at an address, whatever the search would choose; None when it is not free."""
    size = round_size(requested, allocator.settings)
    for free in allocator.pools.free_blocks():
        if not free.address <= address <= address + size <= free.address + free.size:
            continue
        if address > free.address:
            _cut_at(allocator, free, address - free.address, keep=True)
        slack = free.size - size
        if not free.pool.is_small and free.expandable is None and slack <= SMALL_SIZE:
            size = free.size
        return _take(allocator, free, size, requested)
    return None
