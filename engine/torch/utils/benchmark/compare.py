"""``Compare``: measurements as tables, a heading for each label, a row for each sub-label."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Sequence

from stridescope.engine.torch.utils.benchmark.measurement import (
    UNITS,
    Measurement,
    select_unit,
    trim_sigfig,
    unit_to_english,
)


class Colorize(enum.Enum):
    """Whether times far from the best are coloured, by column or by row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements: ``print(compare)``, or ``compare.print()``."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim, self._colour, self._highlight = False, Colorize.NONE, False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements; ValueError for anything else."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
            self._results.append(result)

    def trim_significant_figures(self) -> None:
        """Show the digits only that mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Mark times that are far from the best of their column, or row."""
        self._colour = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that spread far."""
        self._highlight = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = list(dict.fromkeys(one.label for one in merged))
        return "\n".join(self._table([one for one in merged if one.label == label]) for label in labels)

    def _table(self, results: Sequence[Measurement]) -> str:
        unit, scale = select_unit(min(one.median for one in results))
        columns = list(dict.fromkeys(one.description for one in results))
        threads = sorted({one.num_threads for one in results})
        names = list(dict.fromkeys((one.env, one.as_row_name) for one in results))
        cells = {(o.num_threads, o.env, o.as_row_name, o.description): self._number(o, scale) for o in results}
        parts = [self._rows(count, names, columns, cells) for count in threads]
        width = 6 + max(len(name) for _, rows in parts for name, _ in rows) + 2
        texts = [[c or "" for c in columns], *(row for _, rows in parts for _, row in rows)]
        widths = [max(len(text) for text in column) for column in zip(*texts, strict=True)]
        head = " " * width + _cells([f"{c or '':^{w}}" for c, w in zip(columns, widths, strict=True)])
        lines = [f"[{f' {results[0].label or str()} ':-^{len(head) - 2}}]", head]
        for title, rows in parts:
            lines.append(f"{title} {'-' * (len(head) - len(title) - 1)}")
            for name, row in rows:
                shown = _cells([f"{text:>{w}}" for text, w in zip(row, widths, strict=True)])
                lines.append(f"      {name}".ljust(width) + shown)
        high = self._highlight and any(one.has_warnings for one in results)
        mark = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n" if high else ""
        return "\n".join([*lines, "", f"Times are in {unit_to_english(unit)}s ({unit}).", mark])

    def _rows(
        self, threads: int, names: Sequence[tuple[str, str]], columns: Sequence[str | None],
        cells: dict[tuple[int, str, str, str | None], str],
    ) -> tuple[str, list[tuple[str, list[str]]]]:  # fmt: skip
        several = len({env for env, _ in names}) > 1
        rows = []
        for env, name in names:
            row = [cells.get((threads, env, name, column), "") for column in columns]
            if any(row):
                rows.append((f"({env}) {name}" if several else name, row))
        return f"{threads} threads:", rows

    def _number(self, one: Measurement, scale: float) -> str:
        value = one.median / scale
        if self._trim:
            digits = one.significant_figures
            value = trim_sigfig(value, digits)
            text = f"{value:.0f}" if value >= 10 ** (digits - 1) else f"{value:.{max(0, digits - 1)}f}"
        else:
            text = f"{value:.1f}"
        if self._highlight and one.has_warnings:
            text += f" (! {one.iqr / one.median * 100:.0f}%)"
        return text


def _cells(texts: Sequence[str]) -> str:
    return "".join(f"|  {text}  " for text in texts)[:-2]


def ordered_unique(elements: Iterable[object]) -> list[object]:
    """The elements without repetitions."""
    return list(dict.fromkeys(itertools.chain(elements)))


__all__ = ["UNITS", "Colorize", "Compare", "ordered_unique"]
