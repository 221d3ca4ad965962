"""What was measured, of what, and how sure it is."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

# From how many measurements on, and up to which spread of the middle half, times count as comparable.
MAX_SIGNIFICANT_FIGURES = 4
MIN_CONFIDENCE_INTERVAL = 25e-9
SPREAD, GROSS_SPREAD = 0.1, 0.25
_MAYBE = "could indicate system fluctuation"
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is timed: the statement, its set-up, and how tables name it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement where there is none."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else f"stmt:{_numbered(self.stmt)}"

    def setup_str(self) -> str:
        """The set-up as it is shown: nothing for none."""
        if self.setup == "pass" or not self.setup:
            return ""
        return f"setup:\n{_numbered(self.setup)}\n" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and set-up."""
        parts = (self.title, self.description or "", self.setup_str())
        return "\n".join(part for part in parts if part)


def _numbered(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """The times of some measurements, each of ``number_per_run`` runs; ``times`` are seconds per run."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None
    FIELDS: ClassVar[tuple[str, ...]] = ("stmt", "setup", "label", "sub_label", "description", "env", "num_threads")

    def __getattr__(self, name: str) -> Any:
        if name in Measurement.FIELDS and "task_spec" in vars(self):
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """Seconds per run."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        """The middle one."""
        return float(np.median(self.times))

    @property
    def mean(self) -> float:
        """The average."""
        return float(np.mean(self.times))

    @property
    def iqr(self) -> float:
        """How far the middle half spreads."""
        low, high = np.quantile(self.times, (0.25, 0.75))
        return float(high - low)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median mean something, by the spread of the middle half."""
        count = len(self.raw_times)
        middle = sorted(self.times)[count // 4 : math.ceil(3 * count / 4)]
        interval = max(1.645 * float(np.std(middle)) / math.sqrt(len(middle)), MIN_CONFIDENCE_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), MAX_SIGNIFICANT_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread so far that they should not be trusted."""
        return not self.meets_confidence(SPREAD)

    def meets_confidence(self, threshold: float = SPREAD) -> bool:
        """Whether the middle half spreads over less than this share of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The task's title."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """How a table names it."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        lines = [object.__repr__(self), self.task_spec.summarize()]
        unit, scale = select_unit(self.median)
        name, middle = ("Median: ", self.median / scale) if len(self.raw_times) > 1 else ("", self.median / scale)
        lines.append(f"  {name}{middle:.2f} {unit}")
        if len(self.raw_times) > 3:
            low, high = np.quantile(self.times, (0.25, 0.75)) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        count, threads = len(self.raw_times), self.task_spec.num_threads
        runs = f"1 measurement, {self.number_per_run} runs ," if count == 1 else (
            f"{count} measurements, {self.number_per_run} runs per measurement,")  # fmt: skip
        lines.append(f"  {runs} {threads} thread{'s' if threads > 1 else ''}")
        if self.has_warnings:
            share, gross = self.iqr / self.median, not self.meets_confidence(GROSS_SPREAD)
            lines.append(f"  WARNING: Interquartile range is {share * 100:.1f}% of the median measurement.")
            lines.append(f"           This {'suggests significant environmental influence' if gross else _MAYBE}.")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Those of the same task together, in the order of the tasks."""
        grouped: dict[TaskSpec, list[Measurement]] = collections.defaultdict(list)
        for one in measurements:
            grouped[one.task_spec].append(one)
        return [_merged(spec, group) for spec, group in grouped.items()]


def _merged(spec: TaskSpec, group: Sequence[Measurement]) -> Measurement:
    return Measurement(1, [time for one in group for time in one.times], spec)


def select_unit(seconds: float) -> tuple[str, float]:
    """The unit in which a time reads best, and its length in seconds."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(math.floor(math.log10(seconds) / 3), "s")
    return unit, UNITS[unit]


def unit_to_english(unit: str) -> str:
    """The whole name of a unit."""
    return ENGLISH[unit]


def trim_sigfig(value: float, digits: int) -> float:
    """A number with so many digits."""
    if not value:
        return 0.0
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))
