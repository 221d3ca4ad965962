"""Rows of plain values, printed as a table or as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]
WIDEST = 60


def print_rows(rows: Iterable[Row], as_json: bool) -> None:
    """Print rows that all have the same keys; dicts inside are for JSON only."""
    listed = list(rows)
    print(json.dumps(list(map(_plain, listed))) if as_json else table(listed))


def print_facts(facts: Row, as_json: bool) -> None:
    """Print one row, a line for each of its values."""
    if as_json:
        print(json.dumps(_plain(facts)))
        return
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        print(f"{name:{width}}  {text_of(value)}".rstrip())


def table(rows: Sequence[Row]) -> str:
    """Return rows as text in columns, numbers to the right."""
    if not rows:
        return "(none)"
    names = [name for name in rows[0] if not any(isinstance(row[name], dict) for row in rows)]
    columns = [_column(name, [row[name] for row in rows]) for name in names]
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _column(name: str, values: list[Any]) -> list[str]:
    cells = [name, *map(_cell, values)]
    width = max(map(len, cells))
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return [cell.rjust(width) if numbers else cell.ljust(width) for cell in cells]


def _cell(value: Any) -> str:
    shown = text_of(value)
    return shown if len(shown) <= WIDEST else shown[: WIDEST - 1] + "…"


def text_of(value: Any) -> str:
    """Return a value as people read it, on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, tuple):
        return ", ".join(_grouped(item) if isinstance(item, tuple) else text_of(item) for item in value)
    return str(value).replace("\r", "\\r").replace("\n", "\\n")


def _grouped(items: tuple[Any, ...]) -> str:
    return "(" + ", ".join(map(text_of, items)) + ")"


def _plain(value: Any) -> Any:
    """Make a value fit for strict JSON: bytes as hexadecimal text, NaN and infinities as text."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
