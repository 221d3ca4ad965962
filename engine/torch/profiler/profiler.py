"""The profiler with a schedule: which steps of a training loop are measured, and what happens with each trace."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any, Self

from stridescope.engine.torch import cuda
from stridescope.engine.torch.autograd import profiler as events_of
from stridescope.engine.torch.autograd.profiler_util import EventList
from stridescope.engine.warn import warn, warn_once


class ProfilerAction(enum.Enum):
    """What a profiler does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


class ProfilerActivity(enum.Enum):
    """Where a profiler listens. Only CPU and CUDA can be heard here."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """Where a profiler can listen on this machine."""
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if cuda.is_available() else {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a schedule: after ``skip_first`` steps, cycles of ``wait``, ``warmup`` and ``active`` steps.

    ``repeat`` is how many cycles (0: until the end); with ``skip_first_wait`` the first cycle does not wait.
    Raises AssertionError for numbers that make no schedule.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if not warmup:
        warn("Profiler won't be using warmup, this can skew profiler results")
    cycle = wait + warmup + active

    def action_of(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step += (wait if skip_first_wait else 0) - skip_first
        if repeat and step >= repeat * cycle:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action_of


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[profile], None]:
    """Return an ``on_trace_ready`` that writes each trace into ``dir_name``, which is made where it is missing.

    Raises RuntimeError where it cannot be made.
    """
    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def write(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write


_LISTENING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
# What may follow a step whose work is not finished: anything else is a schedule's mistake.
_FOLLOWS = {ProfilerAction.WARMUP: (*_LISTENING, ProfilerAction.WARMUP), ProfilerAction.RECORD: _LISTENING}


def _always(_step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def _chosen(activities: Iterable[Any] | None, use_cuda: bool | None) -> set[ProfilerActivity]:
    """The activities to listen to; the keys where they come with filters."""
    chosen = supported_activities() if activities is None else set()
    for item in activities or ():
        chosen |= set(item) if isinstance(item, dict) else {item} & set(ProfilerActivity)
    if use_cuda is not None:
        warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning)
        chosen = chosen | {ProfilerActivity.CUDA} if use_cuda else chosen - {ProfilerActivity.CUDA}
    if not chosen:
        raise AssertionError("No valid profiler activities found")
    return chosen


class profile:  # noqa: N801
    """Measures the steps that a schedule names; a script calls :meth:`step` at the end of each.

    Without a schedule everything between ``with profile() as prof:`` and its end is measured. ``on_trace_ready`` is
    called with the profiler whenever the measured steps of a cycle are over.
    """

    def __init__(
        self, *, activities: Iterable[Any] | None = None, schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None, record_shapes: bool = False,
        profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False, with_modules: bool = False,
        experimental_config: Any = None, execution_trace_observer: Any = None, acc_events: bool = False,
        use_cuda: bool | None = None, custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:  # fmt: skip
        self.activities = _chosen(activities, use_cuda)
        self.schedule, self.record_steps = schedule or _always, schedule is not None
        self.on_trace_ready, self.acc_events = on_trace_ready, acc_events
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        self.custom_trace_id_callback = custom_trace_id_callback
        self.profiler: events_of.profile | None = None
        self.step_num = 0
        self.step_rec_fn: events_of.record_function | None = None
        self.current_action = self.schedule(0)
        self._preset: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the first step."""
        self._pass(ProfilerAction.NONE, self.current_action)
        self._label_step()

    def step(self) -> None:
        """Say that the next step begins."""
        self._end_label()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        self._pass(before, self.current_action)
        self._label_step()

    def stop(self) -> None:
        """End with the step that runs."""
        self._end_label()
        self._pass(self.current_action, None)

    def _label_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = events_of.record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_label(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _pass(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """Go from one step's action to the next one's, or to the end (None)."""
        going_on = before is after and before is not ProfilerAction.RECORD_AND_SAVE
        if going_on or (before is ProfilerAction.RECORD and after is ProfilerAction.RECORD_AND_SAVE):
            return
        if after is not None and after not in _FOLLOWS.get(before, (after,)):
            warn(f"Incorrect schedule: {before.name} followed by {after.name}")
        self._leave(before, after)
        if after in _LISTENING:
            if before is not ProfilerAction.WARMUP:
                self.prepare_trace()
            self.start_trace()
        elif after is ProfilerAction.WARMUP:
            self.prepare_trace()

    def _leave(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """End what ran during the last step where the next one does not go on with it."""
        if before in _LISTENING:
            self.stop_trace()
            ready = before is ProfilerAction.RECORD_AND_SAVE or after is None
            if ready and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif before is ProfilerAction.WARMUP and after in (None, ProfilerAction.NONE):
            self.start_trace()
            self.stop_trace()

    # ---- traces ------------------------------------------------------------------------------------------------------

    def prepare_trace(self) -> None:
        """Get ready for a new trace; the events of the one before are forgotten, but with ``acc_events``."""
        if self.profiler is not None and self.acc_events:
            self.profiler.entered = False
            return
        if self.profiler is not None:
            warn_once(
                "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle will be "
                "reported. To keep events across cycles, set acc_events=True."
            )
        self.profiler = events_of.profile(
            use_cpu=ProfilerActivity.CPU in self.activities, use_device=self._device(),
            record_shapes=self.record_shapes, with_flops=self.with_flops, profile_memory=self.profile_memory,
            with_stack=self.with_stack, with_modules=self.with_modules, acc_events=self.acc_events,
        )  # fmt: skip

    def _device(self) -> str | None:
        if ProfilerActivity.CUDA not in self.activities:
            return None
        if cuda.is_available():
            return "cuda"
        events_of.warn_without_device("CUDA")
        return None

    def start_trace(self) -> None:
        """Begin to listen."""
        assert self.profiler is not None
        self.profiler.__enter__()

    def stop_trace(self) -> None:
        """Listen no more. Raises AssertionError before a trace was begun."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self.profiler.__exit__(None, None, None)

    def _finished(self, doing: str) -> events_of.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {doing}")
        return self.profiler

    def events(self) -> EventList:
        """All events of the trace. Raises AssertionError before a trace was begun."""
        return self._finished("accessing events").function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The sums over all calls of one name. Raises AssertionError before a trace was begun."""
        prof = self._finished("getting key averages")
        return prof.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the trace for Chrome's tracing page or Perfetto; gzip where the name ends with ``.gz``."""
        self._finished("exporting chrome trace").export_chrome_trace(path, self._preset)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the call stacks for a flame graph; needs ``with_stack=True``."""
        self._finished("exporting stacks").export_stacks(path, metric)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add a JSON text under ``key`` to the files that are exported."""
        self._preset[key] = value

    add_metadata_json = preset_metadata_json

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text under ``key`` to the files that are exported."""
        self._preset[key] = json.dumps(value)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Listen or not from now on, within the trace that runs."""
        if self.profiler is not None and self.profiler._collector is not None and set(activities) & self.activities:
            self.profiler._collector.listen(enable)


for _class in (ProfilerAction, ProfilerActivity, profile):
    _class.__module__ = "torch.profiler.profiler" if _class is not ProfilerActivity else "torch._C._profiler"
