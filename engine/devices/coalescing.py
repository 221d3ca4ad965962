"""Cutting a free block, and joining free neighbours again."""

from __future__ import annotations

from stridescope.engine.devices.block import Block


def cut(block: Block, size: int) -> Block:
    """Cut ``size`` bytes off the low end of a free block and return them as a new block.

    The remainder is the old record at a new place, as in PyTorch, so it keeps the requested size of its last use.
    It returns to its pool.
    """
    low = Block(block.address, size, block.stream, block.pool)
    low.expandable = block.expandable
    low.segment_stack = block.segment_stack
    low.insert_before(block)
    block.address += size
    block.size -= size
    block.pool.insert(block)
    return low


def absorb(block: Block, neighbour: Block | None) -> int:
    """Join a free neighbour into a block; returns the bytes it brought, 0 when it must stay apart."""
    if neighbour is None or not neighbour.is_free or neighbour.mapped != block.mapped:
        return 0
    if neighbour.mapped:
        block.pool.remove(neighbour)
    else:
        block.pool.remove_unmapped(neighbour)
    if block.prev is neighbour:
        block.address = neighbour.address
        block.segment_stack = neighbour.segment_stack
        block.prev = neighbour.prev
        if block.prev is not None:
            block.prev.next = block
    else:
        block.next = neighbour.next
        if block.next is not None:
            block.next.prev = block
    block.size += neighbour.size
    return neighbour.size
