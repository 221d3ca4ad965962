"""How numbers in rows print: the bracketed text inside ``print(tensor)``, and the options that change it.

Numbers are printed in one of three styles that the values themselves choose: whole numbers with a point (``3.``),
fixed point, or scientific. All elements of a tensor share the style and the width.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np


@dataclasses.dataclass
class Options:
    """What ``torch.set_printoptions`` changes."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


options = Options()
PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors print; ``sci_mode`` None lets the values decide."""
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen = PROFILES.get(profile or "", {}) | {name: value for name, value in given.items() if value is not None}
    for name, value in chosen.items():
        setattr(options, name, value)
    options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, as keyword arguments for ``set_printoptions``."""
    return dataclasses.asdict(options)


@contextlib.contextmanager
def printoptions(**changes: Any) -> Iterator[None]:
    """Other options inside a ``with`` block."""
    before = get_printoptions()
    set_printoptions(**changes)
    try:
        yield
    finally:
        set_printoptions(**before)


class Style:
    """How the elements of one array are written: as words, whole numbers, fixed point or scientific."""

    def __init__(self, values: np.ndarray) -> None:
        self.kind = "word"
        self.width = 1
        if values.dtype.kind in "biu":
            self.width = max([1, *(len(str(v)) for v in values.ravel().tolist())])
        else:
            self._choose(values.astype(np.float64).ravel())

    def _choose(self, values: np.ndarray) -> None:
        self.kind = "whole"
        numbers = values[np.isfinite(values) & (values != 0)]
        if not numbers.size:
            return
        if options.sci_mode is None:
            magnitudes = np.abs(numbers)
            low, high = float(magnitudes.min()), float(magnitudes.max())
            scientific = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        else:
            scientific = options.sci_mode
        whole = bool((numbers == np.ceil(numbers)).all())
        self.kind = "scientific" if scientific else "whole" if whole else "fixed"
        self.width = max(1, *(len(self._plain(v)) for v in numbers.tolist()))

    def _plain(self, value: Any) -> str:
        if self.kind == "word":
            return str(value)
        if self.kind == "scientific":
            return f"{value:.{options.precision}e}"
        if self.kind == "fixed":
            return f"{value:.{options.precision}f}"
        return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"

    def write(self, value: Any) -> str:
        """One element, padded to the common width."""
        return self._plain(value).rjust(self.width)


class ComplexStyle:
    """How complex elements are written: real and imaginary part each in a style of its own."""

    def __init__(self, values: np.ndarray) -> None:
        self.real, self.imag = Style(values.real), Style(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def write(self, value: complex) -> str:
        """One element."""
        imaginary = f"{self.imag.write(value.imag)}j".lstrip()
        sign = "" if imaginary[0] in "+-" else "+"
        return f"{self.real.write(value.real)}{sign}{imaginary}"


def _edges(values: np.ndarray) -> np.ndarray:
    """The part of a large array that is shown, from which the style is chosen."""
    edge = options.edgeitems
    if values.ndim == 1 or edge:
        for dim, size in enumerate(values.shape):
            if size > 2 * edge and edge:
                values = np.take(values, [*range(edge), *range(size - edge, size)], dim)
        return values
    return values[:0]


def _rows(values: np.ndarray, indent: int, summarize: bool, style: Any) -> str:
    if values.ndim == 0:
        return str(style.write(values.item()))
    if values.ndim == 1:
        return _row(values, indent, summarize, style)
    size, edge = values.shape[0], options.edgeitems
    cut = summarize and size > 2 * edge
    shown = [*range(edge), *range(size - edge, size)] if cut else range(size)
    parts = [_rows(values[i], indent + 1, summarize, style) for i in shown]
    if cut:
        parts.insert(edge, "...")
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _row(values: np.ndarray, indent: int, summarize: bool, style: Any) -> str:
    edge = options.edgeitems
    if summarize and not edge:
        cells = ["..."]
    elif summarize and values.shape[0] > 2 * edge:
        head, tail = values[:edge].tolist(), values[-edge:].tolist()
        cells = [*map(style.write, head), " ...", *map(style.write, tail)]
    else:
        cells = [style.write(v) for v in values.tolist()]
    per_line = max(1, (options.linewidth - indent) // (style.width + 2))
    lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def numbers(values: np.ndarray, indent: int) -> str:
    """The bracketed numbers of an array, as those of a tensor."""
    if not values.size:
        return "[]"
    summarize = values.size > options.threshold
    seen = _edges(values) if summarize else values
    style = ComplexStyle(seen) if values.dtype.kind == "c" else Style(seen)
    return _rows(values, indent, summarize, style)
