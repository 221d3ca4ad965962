"""The ready queue: which of the nodes that could run is next.

PyTorch keeps it in a ``std::priority_queue`` ordered by sequence number. All leaves have the same number, and a binary
heap is not fair to equals, so the order in which leaves get their gradients is that of libstdc++'s heap: it is the same
steps here.
"""

from __future__ import annotations

from stridescope.engine.autograd.node import Node


class ReadyQueue:
    """A binary heap of nodes with the youngest on top."""

    __slots__ = ("heap",)

    def __init__(self) -> None:
        self.heap: list[Node] = []

    def __bool__(self) -> bool:
        return bool(self.heap)

    def __len__(self) -> int:
        return len(self.heap)

    def push(self, node: Node) -> None:
        """Put a node in."""
        heap = self.heap
        heap.append(node)
        if len(heap) > 1:
            self._rise(len(heap) - 1, 0, node)

    def pop(self) -> Node:
        """Take the node with the highest sequence number out."""
        heap = self.heap
        last = heap.pop()
        if not heap:
            return last
        top, heap[0] = heap[0], last
        self._sink(last)
        return top

    def _rise(self, hole: int, top: int, node: Node) -> None:
        heap, number = self.heap, node._sequence
        parent = (hole - 1) // 2
        while hole > top and heap[parent]._sequence < number:
            heap[hole] = heap[parent]
            hole, parent = parent, (parent - 1) // 2
        heap[hole] = node

    def _sink(self, node: Node) -> None:
        """Move the hole at the top down along the greater children, then let ``node`` rise from there."""
        heap, length, hole = self.heap, len(self.heap), 0
        child = 0
        while child < (length - 1) // 2:
            child = 2 * (child + 1)
            if heap[child]._sequence < heap[child - 1]._sequence:
                child -= 1
            heap[hole] = heap[child]
            hole = child
        if length % 2 == 0 and child == (length - 2) // 2:
            child = 2 * child + 1
            heap[hole] = heap[child]
            hole = child
        self._rise(hole, 0, node)
