"""``torch.nn.parallel``: modules on several devices, or in several processes."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.nn.parallel.data_parallel import DataParallel, data_parallel
from stridescope.engine.torch.nn.parallel.distributed import DistributedDataParallel

__getattr__ = missing_from("torch.nn.parallel", __name__)
__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
