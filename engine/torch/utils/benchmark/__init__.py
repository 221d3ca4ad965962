"""``torch.utils.benchmark``: timing statements, and comparing what was measured."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.utils.benchmark.compare import Colorize, Compare, ordered_unique
from stridescope.engine.torch.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    select_unit,
    trim_sigfig,
    unit_to_english,
)
from stridescope.engine.torch.utils.benchmark.timer import Language, Timer, set_torch_threads
from stridescope.engine.torch.utils.benchmark.timer import timer as timer

for _kind in (Colorize, Compare, Language, Measurement, TaskSpec, Timer):
    _kind.__module__ = f"torch.utils.benchmark.utils.{'timer' if _kind in (Language, Timer) else 'common'}"
Colorize.__module__ = Compare.__module__ = "torch.utils.benchmark.utils.compare"
__getattr__ = missing_from("torch.utils.benchmark", __name__)

__all__ = [
    "Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit",
    "set_torch_threads", "timer", "trim_sigfig", "unit_to_english",
]  # fmt: skip
