"""``torch.distributed.algorithms``: ways to make collectives cheaper."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from

__getattr__ = missing_from("torch.distributed.algorithms", __name__)
