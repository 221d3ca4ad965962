"""Where cells lie, and the picture that many of them become."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QSizeF
from PySide6.QtGui import QColor

from stridescope.app.items.cells import CELLS_FROM, LEAST_PICTURE, CellMatrix, Raster, cell_image, levels, word_size
from stridescope.app.theme import THEMES

ROOM = QSizeF(300, 264)


def raster(rows: int, columns: int) -> Raster:
    return Raster.fitted(QPointF(10, 20), (rows, columns), ROOM, 44)


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (6, 6), (1, 40)])
def test_few_cells_are_squares(shape: tuple[int, int]) -> None:
    placed = raster(*shape)
    assert placed.across == placed.down >= CELLS_FROM and not placed.is_picture


@pytest.mark.parametrize("shape", [(1, 500_000), (500_000, 1), (1000, 1000), (3, 100_000)])
def test_many_cells_are_a_picture_that_can_be_seen(shape: tuple[int, int]) -> None:
    placed = raster(*shape)
    assert placed.is_picture
    assert min(placed.area.width(), placed.area.height()) >= LEAST_PICTURE - 1e-6
    assert placed.area.width() <= 300.001 and placed.area.height() <= 264.001


@pytest.mark.parametrize("shape", [(3, 4), (1, 500_000), (700, 20)])
def test_a_point_finds_its_cell(shape: tuple[int, int]) -> None:
    placed = raster(*shape)
    for cell in [(0, 0), (shape[0] // 2, shape[1] // 2), (shape[0] - 1, shape[1] - 1)]:
        assert placed.cell(placed.rect(*cell).center()) == cell
    assert placed.cell(QPointF(-50, 9999)) == (shape[0] - 1, 0)


def test_a_picture_has_one_pixel_a_cell() -> None:
    lit = np.zeros((20, 30), bool)
    lit[5, 7] = True
    image = cell_image(CellMatrix(np.arange(600.0).reshape(20, 30), lit, QColor("#56b4e9")), THEMES["dark"])
    assert (image.width(), image.height()) == (30, 20)
    assert image.pixelColor(7, 5).saturation() > image.pixelColor(8, 5).saturation()
    assert image.pixelColor(29, 19).lightness() > image.pixelColor(0, 0).lightness()


def test_levels_survive_what_is_not_finite() -> None:
    assert levels(np.array([0.0, np.nan, np.inf, 10.0])).tolist() == [0, 0, 0, 255]
    assert levels(np.array([np.nan])).tolist() == [0]
    assert levels(np.array([3, 3])).tolist() == [0, 0]


def test_words_shrink_and_then_vanish() -> None:
    values = np.array([123.456, 1.0])
    sizes = [word_size(values, room) for room in (60, 25, 12)]
    assert sizes[0] == 13 and 7.5 <= sizes[1] < 13 and sizes[2] == 0
