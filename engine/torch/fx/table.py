"""A table in plain text: columns as wide as their longest cell, two spaces between them, a rule under the heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    """The rows below their headers; a column is at least two wider than its head."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(head) + 2, *(len(row[i]) for row in cells)) for i, head in enumerate(headers)]
    lines = [headers, ["-" * width for width in widths], *cells]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)
