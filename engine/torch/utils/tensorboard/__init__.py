"""``torch.utils.tensorboard``: numbers, texts, pictures and distributions of a run, for TensorBoard to show."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torch.utils.tensorboard.writer import SummaryWriter

__getattr__ = attribute_of("torch.utils.tensorboard")
__all__ = ["SummaryWriter"]
