"""Buckets: which gradients travel together, and the flat buffer in which they do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stridescope.engine import torch
from stridescope.engine.layout import is_non_overlapping_and_dense
from stridescope.engine.tensor import Tensor


def assignment(parameters: Sequence[Tensor], order: Iterable[int], limits: Sequence[int]) -> list[list[int]]:
    """Put parameters, in this order, into buckets of one dtype and device.

    A bucket is closed when its bytes reach the limit; the first bucket of a dtype has the first limit, and so on, and
    the last limit holds for all that follow.
    """
    closed: list[list[int]] = []
    open_ones: dict[Any, tuple[list[int], int, int]] = {}
    for index in order:
        parameter = parameters[index]
        key = parameter.dtype, parameter.device
        members, size, nth = open_ones.get(key, ([], 0, 0))
        members.append(index)
        size += parameter._array.size * parameter._array.itemsize
        if size >= limits[min(nth, len(limits) - 1)]:
            closed.append(members)
            members, size, nth = [], 0, nth + 1
        open_ones[key] = members, size, nth
    # What is left comes as from a hash table of C++: the dtype that was seen last is first.
    return closed + [members for members, _, _ in reversed(open_ones.values()) if members]


class Bucket:
    """Some parameters, and the flat buffer of their gradients.

    Attributes:
        indices: which parameters.
        buffer: the gradients one after another.
        views: each gradient's place in the buffer, with the layout of the parameter.
        missing: how many gradients have not come yet in this iteration.
    """

    def __init__(self, indices: Sequence[int], parameters: Sequence[Tensor]) -> None:
        self.indices, self.parameters = list(indices), [parameters[index] for index in indices]
        first: Any = self.parameters[0]
        total = sum(parameter._array.size for parameter in self.parameters)
        self.buffer: Any = torch.zeros(total, dtype=first.dtype, device=first.device)
        self.views = self.placed(self.buffer)
        self.missing = len(self.indices)

    def placed(self, buffer: Any) -> list[Any]:
        """Each parameter's part of a buffer of this size, as a view."""
        views, offset = [], buffer.storage_offset()
        for parameter in self.parameters:
            sizes, strides = tuple(parameter._array.shape), parameter.strides
            if is_non_overlapping_and_dense(sizes, strides):
                views.append(buffer.as_strided(sizes, strides, offset))
            else:
                start = offset - buffer.storage_offset()
                views.append(buffer.narrow(0, start, parameter._array.size).view(sizes))
            offset += parameter._array.size
        return views

    def receive(self, result: Any) -> None:
        """Take over what a communication hook made of the buffer."""
        if result is not self.buffer:
            self.buffer.copy_(result.reshape(-1))
