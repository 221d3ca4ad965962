"""Cells of a matrix: words where they fit, one picture made by NumPy where they do not."""

from __future__ import annotations

import dataclasses

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QImage

from stridescope.app.items.sketch import Sketch
from stridescope.app.theme import Theme
from stridescope.app.values import element_text

SMALLEST_WORD = 7.5  # pixels: smaller numbers cannot be read
LEAST_PICTURE = 26.0  # pixels: a picture of cells is no narrower and no lower
CELLS_FROM = 5  # pixels: smaller cells are pixels of one picture


@dataclasses.dataclass(frozen=True)
class CellMatrix:
    """Rows × columns of elements: their values where known, which are lit, and the hue of their storage."""

    values: np.ndarray | None
    lit: np.ndarray
    hue: QColor

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.lit.shape
        return rows, columns


@dataclasses.dataclass(frozen=True)
class Raster:
    """Where the cells of a matrix lie: ``across`` and ``down`` are pixels from one to the next.

    Cells are squares, save where squares could not be seen: then they are pixels of a picture that keeps a least size.
    """

    origin: QPointF
    rows: int
    columns: int
    across: float
    down: float

    @classmethod
    def fitted(cls, origin: QPointF, shape: tuple[int, int], room: QSizeF, largest: float) -> Raster:
        """Return the largest raster that fits into ``room``."""
        rows, columns = max(shape[0], 1), max(shape[1], 1)
        side = min(largest, room.width() / columns, room.height() / rows)
        if side >= CELLS_FROM:
            return cls(origin, *shape, side, side)
        across = min(room.width(), max(side * columns, LEAST_PICTURE)) / columns
        down = min(room.height(), max(side * rows, LEAST_PICTURE)) / rows
        return cls(origin, *shape, across, down)

    @property
    def area(self) -> QRectF:
        """All cells."""
        return QRectF(self.origin.x(), self.origin.y(), self.columns * self.across, self.rows * self.down)

    @property
    def is_picture(self) -> bool:
        """Whether cells are pixels."""
        return min(self.across, self.down) < CELLS_FROM

    def rect(self, row: int, column: int) -> QRectF:
        """Return where a cell lies, a little gap left out."""
        gaps = (3.0 if pitch > 12 else pitch * 0.12 for pitch in (self.across, self.down))
        width, height = (pitch - gap for pitch, gap in zip((self.across, self.down), gaps, strict=True))
        return QRectF(self.origin.x() + column * self.across, self.origin.y() + row * self.down, width, height)

    def cell(self, point: QPointF) -> tuple[int, int]:
        """Return the row and column under ``point``, the nearest ones beyond the edges."""
        row = int((point.y() - self.origin.y()) / self.down)
        column = int((point.x() - self.origin.x()) / self.across)
        return min(max(row, 0), self.rows - 1), min(max(column, 0), self.columns - 1)


def draw_cells(sketch: Sketch, raster: Raster, cells: CellMatrix, clip: QRectF) -> None:
    """Draw the cells that lie in ``clip``; as a picture, ``cells`` may be a sample of those of the raster."""
    if raster.is_picture or cells.shape != (raster.rows, raster.columns):
        sketch.painter.drawImage(raster.area, cell_image(cells, sketch.theme))
        return
    font_size = word_size(cells.values, raster.across - 7)
    for row in _visible(raster.rows, raster.origin.y(), raster.down, clip.top(), clip.bottom()):
        for column in _visible(raster.columns, raster.origin.x(), raster.across, clip.left(), clip.right()):
            value = cells.values[row, column] if font_size and cells.values is not None else None
            draw_cell(sketch, raster.rect(row, column), value, bool(cells.lit[row, column]), cells.hue, font_size)


def draw_cell(sketch: Sketch, rect: QRectF, value: object, lit: bool, hue: QColor, font_size: float = 13) -> None:
    """Draw one cell; ``value`` None leaves it without words."""
    fill = sketch.theme.mix(hue, 0.55) if lit else sketch.color("free")
    sketch.box(rect, fill, hue if lit else "line", radius=3 if rect.width() > 12 else 1)
    if value is not None:
        baseline = rect.center().y() + font_size * 0.36
        sketch.text(
            rect.center().x(), baseline, element_text(value), "text" if lit else "dim", size=font_size, mono=True,
            anchor="middle",
        )  # fmt: skip


def word_size(values: np.ndarray | None, room: float) -> float:
    """Return the font size at which the longest of (a sample of) the values fits into ``room``; 0 where none does."""
    if values is None or not values.size or room < 8:
        return 0
    longest = max(len(element_text(v)) for v in values.ravel()[:400])
    size = min(13.0, room / (0.6 * longest))
    return size if size >= SMALLEST_WORD else 0


def cell_image(cells: CellMatrix, theme: Theme) -> QImage:
    """Return one pixel per cell: its hue, lighter where the value is larger; unlit cells are grey."""
    ramp = _ramp(theme, cells.hue)
    level = np.full(cells.lit.shape, 128, np.uint8) if cells.values is None else levels(cells.values)
    pixels = ramp[cells.lit.astype(np.uint8), level]
    rows, columns = pixels.shape
    return QImage(pixels.data, columns, rows, columns * 4, QImage.Format.Format_RGB32).copy()


def levels(values: np.ndarray) -> np.ndarray:
    """Return values as 0…255 between the smallest and largest finite one."""
    numbers = np.abs(values) if np.iscomplexobj(values) else values
    numbers = np.asarray(numbers, np.float32)
    finite = np.isfinite(numbers)
    low, high = (float(numbers[finite].min()), float(numbers[finite].max())) if finite.any() else (0.0, 1.0)
    scaled = (np.where(finite, numbers, low) - low) * (255 / ((high - low) or 1))
    return scaled.astype(np.uint8)


def _ramp(theme: Theme, hue: QColor) -> np.ndarray:
    """Return colours by (lit, level) as 0xffRRGGBB."""
    table = np.empty((2, 256), np.uint32)
    for lit, color in enumerate((theme.color("dim"), hue)):
        low, high = theme.mix(color, 0.12 + 0.1 * lit), theme.mix(color, 0.45 + 0.5 * lit)
        ends = [(c.red(), c.green(), c.blue()) for c in (low, high)]
        mixed = np.linspace(ends[0], ends[1], 256).astype(np.uint32)
        table[lit] = 0xFF000000 | mixed[:, 0] << 16 | mixed[:, 1] << 8 | mixed[:, 2]
    return table


def _visible(count: int, start: float, pitch: float, low: float, high: float) -> range:
    first, last = int((low - start) // pitch), int((high - start) // pitch) + 1
    return range(max(0, first), min(count, last))
