"""Choosing the k-th element as PyTorch's CPU kernels do, down to which of several equal elements comes where.

PyTorch calls the C++ standard library, whose partition steps decide the places of equal elements. Here the same steps
are taken over positions. They matter only where elements are equal; without ties any sorting gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Before = Callable[[int, int], bool]
SMALL = 16  # below this length the standard library's sort inserts


def nth_element(order: list[int], nth: int, before: Before) -> None:
    """Put the element that would stand at ``nth`` there, smaller ones before it and larger ones behind."""
    first, last = 0, len(order)
    depth = 2 * (last.bit_length() - 1) if last else 0
    while last - first > 3:
        if not depth:
            _heap_select(order, first, nth + 1, last, before)
            order[first], order[nth] = order[nth], order[first]
            return
        depth -= 1
        cut = _partition(order, first, last, before)
        if cut <= nth:
            first = cut
        else:
            last = cut
    _insert(order, first, last, before)


def sort(order: list[int], length: int, before: Before) -> None:
    """Sort the first ``length`` elements; equal ones keep their order only in short lists."""
    if length:
        _introsort(order, 0, length, 2 * (length.bit_length() - 1), before)
        _insert(order, 0, length, before)


def partial_sort(order: list[int], length: int, before: Before) -> None:
    """Put the first ``length`` elements in order, the others anywhere behind them."""
    _heap_select(order, 0, length, len(order), before)
    for end in range(length - 1, 0, -1):
        _pop_heap(order, 0, end, end, before)


def _introsort(order: list[int], first: int, last: int, depth: int, before: Before) -> None:
    while last - first > SMALL:
        if not depth:
            part = order[first:last]
            partial_sort(part, len(part), before)
            order[first:last] = part
            return
        depth -= 1
        cut = _partition(order, first, last, before)
        _introsort(order, cut, last, depth, before)
        last = cut


def _insert(order: list[int], first: int, last: int, before: Before) -> None:
    for position in range(first + 1, last):
        item, place = order[position], position
        if before(item, order[first]):
            order[first + 1 : position + 1] = order[first:position]
            order[first] = item
            continue
        while before(item, order[place - 1]):
            order[place] = order[place - 1]
            place -= 1
        order[place] = item


def _partition(order: list[int], first: int, last: int, before: Before) -> int:
    """Split by the median of three, which goes to the front first."""
    _median_to_front(order, first, first + 1, first + (last - first) // 2, last - 1, before)
    pivot, low, high = order[first], first + 1, last
    while True:
        while before(order[low], pivot):
            low += 1
        high -= 1
        while before(pivot, order[high]):
            high -= 1
        if low >= high:
            return low
        order[low], order[high] = order[high], order[low]
        low += 1


def _median_to_front(order: list[int], front: int, a: int, b: int, c: int, before: Before) -> None:
    x, y, z = order[a], order[b], order[c]
    if before(x, y):
        chosen = b if before(y, z) else c if before(x, z) else a
    else:
        chosen = a if before(x, z) else c if before(y, z) else b
    order[front], order[chosen] = order[chosen], order[front]


def _heap_select(order: list[int], first: int, middle: int, last: int, before: Before) -> None:
    size = middle - first
    for parent in range((size - 2) // 2, -1, -1):
        _sift(order, first, parent, size, order[first + parent], before)
    for position in range(middle, last):
        if before(order[position], order[first]):
            _pop_heap(order, first, middle, position, before)


def _pop_heap(order: list[int], first: int, last: int, result: int, before: Before) -> None:
    value = order[result]
    order[result] = order[first]
    _sift(order, first, 0, last - first, value, before)


def _sift(order: list[int], first: int, hole: int, size: int, value: int, before: Before) -> None:
    top, child = hole, hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if before(order[first + child], order[first + child - 1]):
            child -= 1
        order[first + hole] = order[first + child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * (child + 1)
        order[first + hole] = order[first + child - 1]
        hole = child - 1
    parent = (hole - 1) // 2
    while hole > top and before(order[first + parent], value):
        order[first + hole] = order[first + parent]
        hole, parent = parent, (parent - 1) // 2
    order[first + hole] = value


def quick_select(order: list[int], k: int, after: Before) -> None:
    """Put the k-th element in its place by Hoare's method, as ``kthvalue`` does; ``after`` compares two positions."""
    low, high = 0, len(order) - 1
    while high > low:
        if high == low + 1:
            if after(order[low], order[high]):
                order[low], order[high] = order[high], order[low]
            return
        middle = low + (high - low) // 2
        order[middle], order[low + 1] = order[low + 1], order[middle]
        for a, b in ((low + 1, high), (low, high), (low + 1, low)):
            if after(order[a], order[b]):
                order[a], order[b] = order[b], order[a]
        i, j, pivot = low + 1, high, order[low]
        while True:
            i += 1
            while after(pivot, order[i]):
                i += 1
            j -= 1
            while after(order[j], pivot):
                j -= 1
            if j < i:
                break
            order[i], order[j] = order[j], order[i]
        order[low], order[j] = order[j], order[low]
        if j <= k:
            low = i
        if j >= k:
            high = j - 1


def _larger(values: Sequence[float]) -> Before:
    """Whether one position's value is larger; NaN is larger than all numbers."""
    return lambda a, b: (values[a] != values[a] and values[b] == values[b]) or values[a] > values[b]


def _smaller(values: Sequence[float]) -> Before:
    return lambda a, b: (values[a] == values[a] and values[b] != values[b]) or values[a] < values[b]


def top(values: Sequence[float], k: int, largest: bool, in_order: bool) -> list[int]:
    """The positions that ``topk`` chooses."""
    order, before = list(range(len(values))), _larger(values) if largest else _smaller(values)
    if k * 64 <= len(values):
        partial_sort(order, k, before)
    else:
        nth_element(order, k - 1, before)
        if in_order:
            sort(order, k - 1, before)
    return order[:k]


def kth(values: Sequence[float], k: int) -> int:
    """The position that ``kthvalue`` chooses; k counts from 0."""
    order = list(range(len(values)))
    quick_select(order, k, _larger(values))
    return order[k]
