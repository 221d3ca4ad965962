"""``GradBucket``: gradients that travel together, as a communication hook sees them."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from stridescope.engine.tensor import Tensor


class GradBucket:
    """A flat buffer of gradients of one dtype, and the parameters that they belong to."""

    def __init__(
        self, index: int, last: bool, buffer: Tensor, gradients: Sequence[Tensor], parameters: Sequence[Tensor]
    ) -> None:
        self._index, self._last, self._buffer = index, last, buffer
        self._gradients, self._parameters = list(gradients), list(parameters)

    def index(self) -> int:
        """Which bucket it is; 0 is the first to travel."""
        return self._index

    def is_last(self) -> bool:
        """Whether it is the last one of the iteration."""
        return self._last

    def buffer(self) -> Tensor:
        """The flat buffer."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Let the bucket have another buffer."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The gradients, as views into the buffer."""
        return self._gradients

    def parameters(self) -> list[Tensor]:
        """The parameters that the gradients belong to."""
        return self._parameters


class BuiltinCommHookType(enum.Enum):
    """The communication hooks that need no Python in PyTorch."""

    ALLREDUCE, FP16_COMPRESS = 1, 2

    def __str__(self) -> str:
        return f"BuiltinCommHookType.{self.name}"


GradBucket.__module__ = "torch.distributed"
BuiltinCommHookType.__module__ = "torch._C._distributed_c10d"
