"""Communication hooks for DistributedDataParallel."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.distributed.algorithms.ddp_comm_hooks import default_hooks

__getattr__ = missing_from("torch.distributed.algorithms.ddp_comm_hooks", __name__)
__all__ = ["default_hooks"]
