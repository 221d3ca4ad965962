"""``torch.profiler``: what ran, how often, for how long and with how much memory, step by step."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torch.autograd.profiler import kineto_available, record_function
from stridescope.engine.torch.autograd.profiler_util import DeviceType
from stridescope.engine.torch.profiler.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__getattr__ = attribute_of("torch.profiler")
__all__ = [
    "DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule",
    "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip
