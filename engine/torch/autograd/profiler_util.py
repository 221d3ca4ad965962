"""``torch.autograd.profiler_util``: what a profiler has seen, one event for each call, and their sums by name."""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.autograd import _profile_files, _profile_table
from stridescope.engine.torch.autograd._profile_table import format_time


class DeviceType(enum.Enum):
    """Where an event took place."""

    CPU = 0
    CUDA = 1


class Interval:
    """When an event began and ended, in microseconds since the profiler started."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it took, in microseconds."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Work on a device that an op has launched; ``duration`` in microseconds."""

    name: str
    device: int
    duration: float


def _shown(field: str) -> property:
    def text(self: Any) -> str:
        return format_time(getattr(self, field))

    return property(text, doc=f"``{field}`` in words: µs, ms or s with three digits.")


class FormattedTimesMixin:
    """Times as texts and per call, for whatever has times in microseconds and a ``count``."""

    cpu_time_total: Any
    device_time_total: Any
    count: int

    cpu_time_str = _shown("cpu_time")
    device_time_str = _shown("device_time")
    cpu_time_total_str = _shown("cpu_time_total")
    device_time_total_str = _shown("device_time_total")
    self_cpu_time_total_str = _shown("self_cpu_time_total")
    self_device_time_total_str = _shown("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        """Microseconds on the CPU for each call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds on the device for each call."""
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def cuda_time(self) -> float:
        """The older name of :attr:`device_time`."""
        return self.device_time


@dataclasses.dataclass(eq=False, repr=False)
class FunctionEvent(FormattedTimesMixin):
    """One call: of an op, of a backward node, or a block that the script has labelled.

    Times are microseconds, memory is bytes: what was allocated meanwhile, less what was freed.
    """

    id: int
    name: str
    thread: int
    start_us: dataclasses.InitVar[float]
    end_us: dataclasses.InitVar[float]
    overload_name: str | None = None
    fwd_thread: int | None = None
    input_shapes: Any = None
    stack: list[str] | None = None
    scope: int = 0
    use_device: str | None = None
    cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    is_async: bool = False
    is_remote: bool = False
    sequence_nr: int = -1
    node_id: int = -1
    device_type: DeviceType = DeviceType.CPU
    device_index: int = 0
    device_resource_id: int | None = None
    is_legacy: bool = False
    flops: int | None = None
    trace_name: str | None = None
    is_user_annotation: bool = False
    count: int = 1
    cpu_parent: FunctionEvent | None = None
    kernels: list[Kernel] = dataclasses.field(default_factory=list)
    cpu_children: list[FunctionEvent] = dataclasses.field(default_factory=list)

    def __post_init__(self, start_us: float, end_us: float) -> None:
        self.time_range = Interval(start_us, end_us)
        self.trace_name = self.trace_name or self.name
        self.device_resource_id = self.thread if self.device_resource_id is None else self.device_resource_id

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Add work on a device that this call has launched."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add a call that this one has made."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Say which call made this one."""
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """What calls are summed by: the name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from begin to end."""
        return self.time_range.elapsed_us() if self.device_type is DeviceType.CPU else 0.0

    @property
    def self_cpu_time_total(self) -> float:
        """Without what the calls inside took."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Without what the calls inside allocated and freed."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        """Microseconds of the device's work that this call and those inside have launched."""
        return self.self_device_time_total + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        """Microseconds of the device's work that this call has launched itself."""
        if self.device_type is not DeviceType.CPU:
            return self.time_range.elapsed_us()
        return sum(kernel.duration for kernel in self.kernels)

    @property
    def self_device_memory_usage(self) -> int:
        """Bytes on the device without the calls inside."""
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    @property
    def cuda_time_total(self) -> float:
        """The older name of :attr:`device_time_total`."""
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        """The older name of :attr:`self_device_time_total`."""
        return self.self_device_time_total

    @property
    def self_cuda_memory_usage(self) -> int:
        """The older name of :attr:`self_device_memory_usage`."""
        return self.self_device_memory_usage

    def __repr__(self) -> str:
        device = self.use_device
        return (
            f"<{type(self).__name__} id={self.id} name={self.name} overload_name={self.overload_name or ''} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


SUMMED = (
    "cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total", "cpu_memory_usage",
    "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage", "count", "flops",
)  # fmt: skip
TAKEN = (
    "key", "node_id", "is_async", "is_remote", "use_device", "cpu_parent", "cpu_children", "overload_name",
    "input_shapes", "stack", "scope", "device_type", "is_legacy", "is_user_annotation",
)  # fmt: skip


class FunctionEventAvg(FormattedTimesMixin):
    """The sums over all calls of one name: times in microseconds, memory in bytes, and their ``count``."""

    key: str | None = None
    node_id: int = 0
    is_async = is_remote = is_legacy = is_user_annotation = False
    overload_name: str | None = None
    input_shapes: Any = None
    stack: Any = None
    scope: int | None = None
    use_device: str | None = None
    cpu_parent: FunctionEvent | None = None
    device_type = DeviceType.CPU
    self_cpu_time_total: float = 0
    self_device_time_total: float = 0
    cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    self_device_memory_usage: int = 0
    flops: int = 0

    def __init__(self) -> None:
        self.count = 0
        self.cpu_time_total = self.device_time_total = 0
        self.cpu_children: list[FunctionEvent] = []

    def add(self, other: FunctionEvent | FunctionEventAvg) -> Self:
        """Add one more call, or another sum of the same name."""
        if self.key is None:
            for name in TAKEN:
                setattr(self, name, getattr(other, name))
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + (getattr(other, name) or 0))
        return self

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> Self:
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<{type(self).__name__} key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


class EventList(list[Any]):
    """Events, or their sums by name; a list with sums, a table and exports."""

    def __init__(
        self, events: Iterable[Any] = (), *, use_device: str | None = None, profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(events)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events on the CPU, each counted once."""
        return float(sum(event.self_cpu_time_total for event in self))

    def __str__(self) -> str:
        return self.table()

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80, header: str | None = None,
        top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """The events as a table, one line each, at most ``row_limit`` (-1: all).

        ``sort_by`` names an attribute, the largest first; ``time_unit`` is "s", "ms", "us" or None (what fits).
        Raises AttributeError where no event has the attribute.
        """
        events: list[Any] = self
        if sort_by is not None:
            by = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
            events = sorted(self, key=lambda event: getattr(event, by), reverse=True)
        widths = _profile_table.Widths(max_name_column_width, max_shapes_column_width, max_src_column_width)
        style = _profile_table.Style(widths, row_limit, header, top_level_events_only, time_unit)
        return _profile_table.table(events, style, memory=self._profile_memory, flops=self._with_flops)

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The sums over calls of the same name (and, where asked, of the same input shapes, callers and overload)."""
        sums: dict[tuple[str, ...], FunctionEventAvg] = collections.defaultdict(FunctionEventAvg)
        for event in self:
            key = [str(event.key), str(event.node_id), str(event.device_type), str(event.is_legacy)]
            key += [str(event.is_user_annotation)]
            key += [str(event.input_shapes)] if group_by_input_shapes else []
            key += [event.overload_name or ""] if group_by_overload_name else []
            key += (event.stack or [])[:group_by_stack_n]
            sums[tuple(key)].add(event)
        for total in sums.values():
            total.stack = (total.stack or [])[:group_by_stack_n]
            total.input_shapes = total.input_shapes if group_by_input_shapes else ""
            total.overload_name = total.overload_name if group_by_overload_name else ""
        return EventList(
            sums.values(), use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops
        )

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events, named "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total += event
            total.key = None
        total.key = "Total"
        return total

    def supported_export_stacks_metrics(self) -> list[str]:
        """What :meth:`export_stacks` can weigh call stacks by."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write the call stacks with their times as a flame graph tool reads them.

        Raises ValueError for a metric that is not one of :meth:`supported_export_stacks_metrics`.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError("metric should be one of: " + str(self.supported_export_stacks_metrics()))
        _profile_files.write_stacks(self, path, metric)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as Chrome's tracing page reads them (JSON; gzip where the name ends with ``.gz``)."""
        _profile_files.write_chrome(self, path)


for _class in (Interval, Kernel, FormattedTimesMixin, FunctionEvent, FunctionEventAvg, EventList):
    _class.__module__ = "torch.autograd.profiler_util"
__getattr__ = missing_from("torch.autograd.profiler_util")

__all__ = ["EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel"]
