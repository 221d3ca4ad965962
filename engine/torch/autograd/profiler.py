"""``torch.autograd.profiler``: what ran, how often and for how long; labels for blocks of a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from stridescope.engine.autograd.modes import ModeContext
from stridescope.engine.torch._not_yet import missing_from, refusal
from stridescope.engine.torch.autograd import _profile_files
from stridescope.engine.torch.autograd._collector import USER, Call, Collector
from stridescope.engine.torch.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from stridescope.engine.warn import warn


class record_function(ModeContext):  # noqa: N801
    """Labels a block or function: while a profiler listens it is an event that holds what runs inside."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._call: tuple[Collector, Call] | None = None

    def __enter__(self) -> Self:
        if (collector := Collector.active) is not None:
            self._call = collector, collector.begin(self.name, USER)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._call is not None:
            collector, call = self._call
            collector.end(call)
            self._call = None

    def clone(self) -> record_function:
        """The same label."""
        return type(self)(self.name, self.args)


class emit_nvtx:  # noqa: N801
    """Marks ops for NVIDIA's tools; only ``enabled=False`` is here."""

    _name = "emit_nvtx"

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        if enabled:
            raise refusal("torch.autograd.profiler", self._name)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        """Nothing was begun."""


class emit_itt(emit_nvtx):  # noqa: N801
    """Marks ops for Intel's tools; only ``enabled=False`` is here."""

    _name = "emit_itt"


class profile:  # noqa: N801
    """Measures every op call, backward node and labelled block between ``with profile() as prof:`` and its end.

    Afterwards ``function_events`` holds the events, ``key_averages()`` their sums by name, ``table()`` a text.
    ``record_shapes``, ``with_flops``, ``profile_memory`` and ``with_stack`` say what is noted besides times;
    ``use_device="cuda"`` notes the kernels of the GPU, which on a simulated one take simulated time.
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True, experimental_config: Any = None,
        acc_events: bool = False, custom_trace_id_callback: Any = None,
    ) -> None:  # fmt: skip
        self.enabled, self.acc_events = enabled, acc_events
        self.use_device = "cuda" if use_cuda else use_device
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory, self.with_stack = with_flops, profile_memory, with_stack
        self.with_modules, self.use_cpu = with_modules, use_cpu
        self.entered = False
        self._collector: Collector | None = None
        self._events: EventList | None = None

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._collector = Collector(
            shapes=self.record_shapes, memory=self.profile_memory, stacks=self.with_stack, flops=self.with_flops,
            device=self.use_device is not None,
        )  # fmt: skip
        self._collector.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._collector is None:
            return
        self._collector.stop()
        kept = self._events if self.acc_events and self._events is not None else ()
        self._events = self._listed([*kept, *self._collector.events(self.use_device)])

    def _listed(self, events: Sequence[FunctionEvent]) -> EventList:
        return EventList(
            events, use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops
        )

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._events is None else repr(self._events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._events is None else str(self._events)

    @property
    def function_events(self) -> EventList:
        """All events, in the order in which they began. Raises RuntimeError while the profiler has not finished."""
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The sums over all calls of one name."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80, header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:  # fmt: skip
        """All events as a text, one a line."""
        return self.function_events.table(
            sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only,
        )  # fmt: skip

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds on the CPU."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(
        self, path: str, metadata: dict[str, str] | None = None, use_python_export: bool = False
    ) -> None:
        """Write the events for Chrome's tracing page; ``metadata`` maps keys of the file to JSON texts."""
        _profile_files.write_chrome(self.function_events, path, metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the call stacks for a flame graph. Raises AssertionError unless ``with_stack=True``."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)


def kineto_available() -> bool:
    """True: everything that PyTorch's default profiler answers is answered here."""
    return True


def warn_without_device(name: str) -> None:
    """Say that kernels cannot be seen, for there is no such device."""
    warn(f"{name} is not available, disabling {name} profiling")


for _class in (record_function, emit_nvtx, emit_itt, profile):
    _class.__module__ = "torch.autograd.profiler"
__getattr__ = missing_from("torch.autograd.profiler")

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]
