"""``torch.optim.lr_scheduler``."""

from __future__ import annotations

from stridescope.engine.torch._in_each import write_out
from stridescope.engine.torch.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from stridescope.engine.torch.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from stridescope.engine.torch.optim.lr_scheduler.cyclic import CyclicLR, OneCycleLR
from stridescope.engine.torch.optim.lr_scheduler.decay import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from stridescope.engine.torch.optim.lr_scheduler.plateau import ReduceLROnPlateau
from stridescope.engine.torch.optim.lr_scheduler.scheduler import LRScheduler, _LRScheduler

SCHEDULERS = (
    ChainedScheduler, ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, ExponentialLR, LambdaLR,
    LinearLR, MultiStepLR, MultiplicativeLR, OneCycleLR, PolynomialLR, ReduceLROnPlateau, SequentialLR, StepLR,
)  # fmt: skip

for _kind in (LRScheduler, _LRScheduler, *SCHEDULERS):
    _kind.__module__ = "torch.optim.lr_scheduler"
    write_out(_kind)

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
