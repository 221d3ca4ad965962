"""The options that the methods of a process group take."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from stridescope.engine.torch.distributed.reduce_op import RedOpType, kind_of


class _Options:
    """Some settings with defaults; ``timeout`` is the group's own while it is None."""

    timeout: timedelta | None = None


class AllreduceOptions(_Options):
    """How to reduce."""

    _op: Any = RedOpType.SUM

    @property
    def reduceOp(self) -> Any:
        """The reduction."""
        return self._op

    @reduceOp.setter
    def reduceOp(self, op: Any) -> None:
        kind_of(op)
        self._op = op


class AllreduceCoalescedOptions(AllreduceOptions):
    """How to reduce several tensors."""


class ReduceScatterOptions(AllreduceOptions):
    """How to reduce what is scattered."""


class BroadcastOptions(_Options):
    """Whose tensor everyone gets."""

    rootRank = 0
    rootTensor = 0


class ReduceOptions(AllreduceOptions):
    """How to reduce, and who gets it."""

    rootRank = 0
    rootTensor = 0


class GatherOptions(_Options):
    """Who gets the tensors."""

    rootRank = 0


class ScatterOptions(_Options):
    """Whose tensors are scattered."""

    rootRank = 0


class AllToAllOptions(_Options):
    """Nothing but a timeout."""


class BarrierOptions(_Options):
    """Nothing but a timeout."""

    device_ids: Any = None


for _class in list(vars().values()):
    if isinstance(_class, type) and issubclass(_class, _Options):
        _class.__module__ = "torch._C._distributed_c10d"
