"""A profile as a table of text, in the columns and with the widths that PyTorch gives it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

PLAIN = 12  # characters of every column but names, shapes and sources
GAP = "  "
FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


@dataclasses.dataclass(frozen=True)
class Widths:
    """The widest that names, input shapes and source lines may be, in characters; None is no limit."""

    name: int | None
    shapes: int | None
    source: int | None


@dataclasses.dataclass(frozen=True)
class Style:
    """How a table is written."""

    widths: Widths
    row_limit: int
    header: str | None
    top_level_only: bool
    time_unit: str | None

    def time(self, microseconds: float) -> str:
        """A time in the unit that was asked for."""
        scale = {"s": 1e6, "ms": 1e3, "us": 1.0}.get(self.time_unit or "")
        return format_time(microseconds) if scale is None else f"{microseconds / scale:.3f}{self.time_unit}"


def format_time(microseconds: float) -> str:
    """A time with three digits in the largest unit of which it is at least one."""
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= scale:
            return f"{microseconds / scale:.3f}{unit}"
    return f"{microseconds:.3f}us"


def format_memory(nbytes: int) -> str:
    """Bytes with two digits in the largest unit of which they are at least one."""
    for unit, power in (("GB", 30), ("MB", 20), ("KB", 10)):
        if abs(nbytes) >= 1 << power:
            return f"{nbytes / (1 << power):.2f} {unit}"
    return f"{nbytes} B"


def format_share(part: float, whole: float) -> str:
    """A part in percent; of nothing it is NaN."""
    return f"{part * 100.0 / whole:.2f}%" if whole else "NaN"


@dataclasses.dataclass(frozen=True)
class Column:
    """A column: its title, its width in characters, and what stands in it for each event."""

    title: str
    width: int
    cells: list[str]
    left: bool = False

    def cell(self, text: str) -> str:
        """One cell, filled up to the width."""
        return text.ljust(self.width) if self.left else text.rjust(self.width)


def table(events: Sequence[Any], style: Style, *, memory: bool, flops: bool) -> str:
    """Return the table of events (or of their sums); nothing where there are none."""
    if not events:
        return ""
    whole = sum(event.self_cpu_time_total for event in events)
    device = sum(event.self_device_time_total for event in events)
    shown = [event for event in events if not style.top_level_only or event.cpu_parent is None]
    shown = shown if style.row_limit < 0 else shown[: style.row_limit]
    columns = [*_names(events, shown, style), *_times(shown, whole, style), *_device_times(shown, device, style)]
    columns += _memory(events, shown) if memory else []
    columns.append(Column("# of Calls", PLAIN, [str(event.count) for event in shown]))
    columns += [
        *_shapes(events, shown, style),
        *_sources(events, shown, style),
        *(_flops(events, shown) if flops else ()),
    ]
    lines = [*_head(columns, style), *_body(columns, shown, style), _rule(columns)]
    lines.append(f"Self CPU time total: {style.time(whole)}")
    if device:
        lines.append(f"Self {_device_name(shown)} time total: {style.time(device)}")
    return "\n".join(lines) + "\n"


def _rule(columns: Sequence[Column]) -> str:
    return "".join("-" * column.width + GAP for column in columns)


def _head(columns: Sequence[Column], style: Style) -> list[str]:
    double = "=" * (len(_rule(columns)) - len(GAP))
    lines = [] if style.header is None else [double, style.header]
    lines += [double, "This report only display top-level ops statistics"] if style.top_level_only else []
    titles = "".join(column.cell(column.title) + GAP for column in columns)
    return [*lines, _rule(columns), titles, _rule(columns)]


def _body(columns: Sequence[Column], shown: Sequence[Any], style: Style) -> list[str]:
    source = next((column for column in columns if column.left), None)
    lines = []
    for row, event in enumerate(shown):
        lines.append("".join(column.cell(column.cells[row]) + GAP for column in columns))
        if source is not None:  # the callers' callers stand below, then an empty line
            for place in [*(_cut_path(entry, source.width) for entry in event.stack[1:]), ""]:
                lines.append("".join(c.cell(place if c is source else "") + GAP for c in columns))
    return lines


def _names(events: Sequence[Any], shown: Sequence[Any], style: Style) -> list[Column]:
    most = style.widths.name
    width = _within(max(len(event.key) for event in events) + 4, most)
    columns = [Column("Name", width, [_cut_name(event.key, most) for event in shown])]
    if any(event.overload_name for event in events):
        columns.append(Column("Overload Name", width, [_cut_name(event.overload_name or "", most) for event in shown]))
    return columns


def _within(width: int, most: int | None) -> int:
    return width if most is None else min(width, most)


def _cut_name(name: str, most: int | None) -> str:
    return name if most is None or len(name) < most - 3 else name[: most - 3] + "..."


def _cut_path(path: str, width: int) -> str:
    if len(path) <= width:
        return path
    return "..." + path[len(path) - width :][3:] if width > 3 else path[len(path) - width :]


def _times(shown: Sequence[Any], whole: float, style: Style) -> list[Column]:
    cells = [
        (
            format_share(event.self_cpu_time_total, whole),
            style.time(event.self_cpu_time_total),
            "0" if event.is_async else format_share(event.cpu_time_total, whole),
            style.time(event.cpu_time_total),
            style.time(event.cpu_time),
        )
        for event in shown
    ]
    return _plain(("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"), cells)


def _plain(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Column]:
    return [Column(title, PLAIN, [row[i] for row in rows]) for i, title in enumerate(titles)]


def _device_name(shown: Sequence[Any]) -> str:
    return str(next((event.use_device for event in shown if event.use_device), "device")).upper()


def _device_times(shown: Sequence[Any], whole: float, style: Style) -> list[Column]:
    if not whole:
        return []
    name = _device_name(shown)
    cells = [
        (
            style.time(event.self_device_time_total),
            format_share(event.self_device_time_total, whole),
            style.time(event.device_time_total),
            style.time(event.device_time),
        )
        for event in shown
    ]
    return _plain((f"Self {name}", f"Self {name} %", f"{name} total", f"{name} time avg"), cells)


def _memory(events: Sequence[Any], shown: Sequence[Any]) -> list[Column]:
    fields = {"CPU Mem": "cpu_memory_usage", "Self CPU Mem": "self_cpu_memory_usage"}
    if any(event.self_device_memory_usage > 0 for event in events):
        name = _device_name(shown)
        fields |= {f"{name} Mem": "device_memory_usage", f"Self {name} Mem": "self_device_memory_usage"}
    return _plain(list(fields), [[format_memory(getattr(event, f)) for f in fields.values()] for event in shown])


def _shapes(events: Sequence[Any], shown: Sequence[Any], style: Style) -> list[Column]:
    if not any(event.input_shapes for event in events):
        return []
    width = _within(max(len(str(event.input_shapes)) for event in events) + 4, style.widths.shapes)
    return [Column("Input Shapes", width, [str(event.input_shapes)[:width] for event in shown])]


def _sources(events: Sequence[Any], shown: Sequence[Any], style: Style) -> list[Column]:
    places = [entry for event in events for entry in event.stack or ()]
    if not places:
        return []
    width = _within(max(map(len, places)) + 4, style.widths.source)
    first = [_cut_path(event.stack[0], width) if event.stack else "" for event in shown]
    return [Column("Source Location", width, first, left=True)]


def _flops(events: Sequence[Any], shown: Sequence[Any]) -> list[Column]:
    known = [event.flops for event in events if event.flops and event.flops > 0]
    if not known:
        return []
    thousands = min(int(math.log10(min(known)) / 3), len(FLOPS) - 1)
    scale = 10.0 ** (-3 * thousands)
    cells = [f"{event.flops * scale:8.3f}" if event.flops and event.flops > 0 else "--" for event in shown]
    return [Column(f"Total {FLOPS[thousands]}", PLAIN, cells)]
