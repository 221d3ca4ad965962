"""Storage: which bytes a tensor reads, in which order, and who else reads them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QKeyEvent, QWheelEvent

from stridescope.app import theme as themes
from stridescope.app.items.canvas import ARROWS, Canvas
from stridescope.app.items.cells import CELLS_FROM, CellMatrix, Raster, draw_cells
from stridescope.app.items.sketch import Sketch, text_width
from stridescope.app.items.strip import Axis, Elements, draw_arc, draw_lane, draw_strip
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.panels.storage_model import Address, Grid, Lane, StoragePicture, Strip, changed, picture
from stridescope.app.selection import NOTHING, Selection
from stridescope.app.text import plural, tr

MARGIN = 34.0
GRID_TOP = 66.0
CELL = 44.0  # pitch of a logical cell with room for a number
GRID_HEIGHT = 6 * CELL
STRIP_HEIGHT = 48.0
STRIP_DROP = 118.0  # from the grids to the strip: room for the arcs and the curve
OTHER_HEIGHT = 40.0
LANE, NAME_ABOVE = 24, 17  # pitch of the lanes of views, and what a name above its lane needs


class Look(NamedTuple):
    """How a line of words is drawn."""

    color: str
    size: float = 12
    mono: bool = False


class StoragePanel(Canvas):
    """Paints a :class:`StoragePicture`: grids above, the strip below, a curve from the cell to its bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Storage"))
        self.picture: StoragePicture | None = None
        self.selection = NOTHING
        self._step, self._written = -1, _NONE
        self._zoom: tuple[int, float, float] = (0, 0.0, 0.0)  # storage, first element, span

    def present(self, moment: Moment) -> None:
        """Show the storage of the selected tensor."""
        before, self.picture = self.picture, picture(moment)
        self.selection = moment.selection
        if moment.step != self._step:
            self._written = changed(before.strip, self.picture.strip) if before and self.picture else _NONE
            self._step = moment.step
        self.setAccessibleDescription(self.picture.words() if self.picture else "")
        self.setMinimumHeight(int(self._content_height()))
        self.update()

    def heading(self) -> tuple[str, str, str]:
        """The title alone: the picture says the rest."""
        return tr("Storage"), "", ""

    def sketch(self, sketch: Sketch) -> None:
        if self.picture is None:
            self._draw_empty(sketch)
            return
        y, right, cell = self._draw_grids(sketch, self.picture)
        place = self._address_place(self.picture.address, right, y)
        if self.picture.address:
            y = max(y, place.y() + 84)
        axis = self._axis(self.picture.strip)
        strip_y = y + STRIP_DROP
        if cell is not None and self.picture.address:
            self._draw_curve(sketch, cell, axis, strip_y)
        if self.picture.address:
            self._draw_address(sketch, self.picture.address, place)
        self._draw_strip(sketch, self.picture.strip, axis, strip_y)
        self._draw_arcs(sketch, axis, strip_y - 8)
        y = self._draw_lanes(sketch, axis, strip_y + STRIP_HEIGHT + 68)
        self._draw_others(sketch, y + 44)

    def _draw_empty(self, sketch: Sketch) -> None:
        middle = self.width() / 2
        sketch.text(middle, 120, tr("No tensor yet"), "dim", size=14, bold=True, anchor="middle")
        sketch.text(middle, 146, tr("Step until the script makes one"), "faint", anchor="middle")

    # ---- the logical grids -------------------------------------------------------------------------------------

    def _draw_grids(self, sketch: Sketch, shown: StoragePicture) -> tuple[float, float, QRectF | None]:
        """Draw the grids side by side and return where they end, below and to the right, and the selected cell."""
        x, bottom, marked = MARGIN + 10, GRID_TOP, None
        for grid in shown.grids:
            raster = self._raster(grid, x)
            words = f"{grid.title}  {grid.facts}"
            sketch.text(x, GRID_TOP - 22, words, bold=True, room=self.width() - x - 12)
            self._draw_grid(sketch, grid, raster)
            bottom = max(bottom, raster.area.bottom())
            if grid.cell is not None:
                marked = self._mark_cell(sketch, grid, raster)
            last = grid is shown.grids[-1]
            x += raster.area.width() + 26 if last else max(raster.area.width(), text_width(words, bold=True)) + 70
        return bottom, x, marked

    def _raster(self, grid: Grid, x: float) -> Raster:
        share = (self.width() - 2 * MARGIN - 220) / len(self.picture.grids if self.picture else (0,))
        return Raster.fitted(QPointF(x, GRID_TOP), grid.shape, QSizeF(max(share, 80.0), GRID_HEIGHT), CELL)

    def _draw_grid(self, sketch: Sketch, grid: Grid, raster: Raster) -> None:
        assert self.picture is not None
        values = self.picture.strip.values if grid.storage == self.picture.strip.storage else None
        inside = values is not None and 0 <= int(grid.elements.max(initial=0)) < len(values)
        known = values[grid.elements] if values is not None and inside else None
        cells = CellMatrix(known, grid.lit, sketch.theme.hue(grid.storage))
        draw_cells(sketch, raster, cells, QRectF(self.rect()))
        own = grid.tensor == self.selection.tensor
        tip = tr("click a cell to see its bytes")
        self.spot(raster.area, lambda point: self._cell_target(grid, *raster.cell(point)), tip, preview=own)

    def _cell_target(self, grid: Grid, row: int, column: int) -> Selection:
        if grid.tensor == self.selection.tensor:
            return Selection(tensor=grid.tensor, cell=grid.index(row, column))
        # A cell of the base: stay with the selected view where it reads that element, else go to the base.
        sampled = (row // grid.step[0], column // grid.step[1])
        if grid.lit[sampled]:
            return Selection(tensor=self.selection.tensor, element=int(grid.elements[sampled]))
        return Selection(tensor=grid.tensor, cell=grid.index(row, column))

    def _mark_cell(self, sketch: Sketch, grid: Grid, raster: Raster) -> QRectF:
        assert grid.cell is not None
        rect = raster.rect(*grid.cell)
        grow = 2.0 if min(raster.across, raster.down) > 8 else 3.0
        sketch.box(rect.adjusted(-grow, -grow, grow, grow), None, "now", width=2.5)
        return rect

    def _address_place(self, address: Address | None, x: float, bottom: float) -> QPointF:
        """Return where the formula begins: beside the grids, or under them where there is no room."""
        beside = address is None or x + text_width(address.formula, size=14, mono=True) <= self.width() - 12
        return QPointF(x, GRID_TOP + 22) if beside else QPointF(MARGIN + 10, bottom + 30)

    def _draw_address(self, sketch: Sketch, address: Address, place: QPointF) -> None:
        """Draw the formula; the curve may pass behind its words."""
        x, y = place.x(), place.y()
        words = (
            (y, address.text, Look("now", size=14, mono=True)),
            (y + 26, address.formula, Look("text", size=14, mono=True)),
            (y + 52, address.legend, Look("dim")),
            (y + 76, address.note, Look("bwd" if address.warning else "dim")),
        )
        for line, text, look in words:
            room = self.width() - x - 8
            wide = min(room, text_width(text, size=look.size, mono=look.mono))
            sketch.box(QRectF(x - 3, line - look.size, wide + 6, look.size + 5), "panel")
            sketch.text(x, line, text, look.color, size=look.size, mono=look.mono, room=room)

    # ---- the storage strip -------------------------------------------------------------------------------------

    def _axis(self, strip: Strip) -> Axis:
        storage, first, span = self._zoom
        left = MARGIN + 10
        if storage != strip.storage:
            first = span = 0.0
        return Axis(left, self.width() - left - MARGIN, strip.count, first, span)

    def _draw_strip(self, sketch: Sketch, strip: Strip, axis: Axis, y: float) -> None:
        behind = text_width(strip.title, bold=True) + text_width(strip.facts) + 24
        sketch.box(QRectF(axis.left - 3, y - 76, min(behind, axis.width), 20), "panel")
        end = sketch.text(axis.left, y - 62, strip.title, bold=True)
        sketch.text(axis.left + end + 18, y - 62, strip.facts, "dim", room=self.width() - axis.left - end - 40)
        values = None if strip.values is None or len(strip.values) != strip.count else strip.values
        draw_strip(sketch, axis, y, STRIP_HEIGHT, Elements(values, strip.lit, sketch.theme.hue(strip.storage)))
        self.spot(
            QRectF(axis.left, y, axis.right - axis.left, STRIP_HEIGHT),
            lambda p: self._element_target(axis, p),
            preview=False,
        )
        self._draw_numbers(sketch, axis, y + STRIP_HEIGHT + 18)
        if strip.summary:
            sketch.text(axis.left, y + STRIP_HEIGHT + 34, strip.summary, "bwd", size=11)
        self._mark_written(sketch, axis, y)
        self._mark_element(sketch, axis, y)

    def _element_target(self, axis: Axis, point: QPointF) -> Selection:
        element = axis.element(point.x())
        assert self.picture is not None
        if element >= 0 and self.picture.strip.lit.mask[element]:
            return Selection(tensor=self.selection.tensor, element=element)
        return Selection(storage=self.picture.strip.storage, element=element)

    def _draw_numbers(self, sketch: Sketch, axis: Axis, y: float) -> None:
        """Write element numbers: every one where there is room, else rounded ones."""
        room = max(30.0, text_width(str(axis.visible().stop), size=10.5, mono=True) + 12)
        every = next(s for s in _NUMBER_STEPS if s * axis.pitch >= room)
        for element in range(axis.visible().start // every * every, axis.visible().stop, every):
            if element >= axis.first:
                sketch.text(axis.middle(element), y, str(element), "faint", size=10.5, mono=True, anchor="middle")

    def _mark_written(self, sketch: Sketch, axis: Axis, y: float) -> None:
        """Underline the elements that this step wrote."""
        seen = self._written[(self._written >= axis.visible().start) & (self._written < axis.visible().stop)]
        if axis.pitch >= CELLS_FROM:
            for element in seen.tolist():
                sketch.painter.fillRect(
                    QRectF(axis.x(element), y + STRIP_HEIGHT + 3, axis.pitch - axis.gap, 3), sketch.color("now")
                )

    def _mark_element(self, sketch: Sketch, axis: Axis, y: float) -> None:
        address = self.picture.address if self.picture else None
        if address and address.element in axis.visible():
            width = max(axis.pitch - axis.gap, 3.0)
            sketch.box(QRectF(axis.x(address.element), y, width, STRIP_HEIGHT), None, "now", width=3)

    def _draw_arcs(self, sketch: Sketch, axis: Axis, y: float) -> None:
        assert self.picture is not None
        hue = sketch.theme.hue(self.picture.strip.storage)
        for arc in self.picture.arcs:
            if axis.pitch * abs(arc.end - arc.start) >= 8 and arc.end in axis.visible() and arc.start in axis.visible():
                draw_arc(sketch, axis, y, arc.start, arc.end, arc.label, hue)

    def _draw_curve(self, sketch: Sketch, cell: QRectF, axis: Axis, y: float) -> None:
        assert self.picture is not None and self.picture.address is not None
        element = self.picture.address.element
        if element not in axis.visible():
            return
        start, end = QPointF(cell.center().x(), cell.bottom() + 3), QPointF(axis.middle(element), y - 4)
        reach = max(60.0, (end.y() - start.y()) * 0.55)
        sketch.curve(start, start + QPointF(0, reach), end - QPointF(0, reach), end, "now", 2)

    # ---- lanes and other storages ------------------------------------------------------------------------------

    def _draw_lanes(self, sketch: Sketch, axis: Axis, y: float) -> float:
        assert self.picture is not None
        lanes, hue = self.picture.lanes, sketch.theme.hue(self.picture.strip.storage)
        sketch.text(axis.left, y, tr("views of this storage"), "dim")
        high = self._lane_height()
        for row, lane in enumerate(lanes):
            self._draw_lane(sketch, axis, y + 16 + row * high, lane, hue)
        return y + 16 + len(lanes) * high

    def _lane_height(self) -> int:
        """Return the height of a lane: names stand in the margin, or above their lanes when one has no room there."""
        assert self.picture is not None
        beside = all(text_width(lane.name, mono=True) <= MARGIN for lane in self.picture.lanes)
        return LANE if beside else LANE + NAME_ABOVE

    def _draw_lane(self, sketch: Sketch, axis: Axis, y: float, lane: Lane, hue: QColor) -> None:
        place = QRectF(0, y - 4, self.width(), self._lane_height())
        if place.height() > LANE:
            sketch.text(axis.left, y + 11, lane.name, "text" if lane.selected else "dim", size=11, mono=True)
            y += NAME_ABOVE
        else:
            sketch.text(axis.left - 8, y + 12, lane.name, mono=True, anchor="right")
        draw_lane(sketch, axis, y, 15, lane.reads, hue if lane.selected else sketch.theme.mix(hue, 0.35))
        if lane.repeated:
            draw_lane(sketch, axis, y, 15, lane.reads, themes.hatch(sketch.color("panel")))
        tip = tr("{name} reads some elements more than once", name=lane.name) if lane.repeated else lane.name
        self.spot(place, Selection(tensor=lane.tensor), tip, preview=False)

    def _draw_others(self, sketch: Sketch, y: float) -> None:
        assert self.picture is not None
        for strip in self.picture.others:
            place = QRectF(0, y - 14, self.width(), 74)
            if place.intersects(self.seen):
                self._draw_other(sketch, strip, y)
            self.spot(place, Selection(storage=strip.storage), preview=False)
            y += 92
        if self.picture.hidden:
            text = plural(self.picture.hidden, "and {n} more storage", "and {n} more storages")
            sketch.text(MARGIN + 10, y, text, "dim")

    def _draw_other(self, sketch: Sketch, strip: Strip, y: float) -> None:
        axis = Axis(MARGIN + 10, self.width() - 2 * MARGIN - 10, strip.count)
        end = sketch.text(axis.left, y, strip.title, bold=True)
        sketch.text(axis.left + end + 18, y, strip.facts, "dim", room=self.width() - axis.left - end - 40)
        values = None if strip.values is None or len(strip.values) != strip.count else strip.values
        elements = Elements(values, strip.lit, sketch.theme.hue(strip.storage))
        draw_strip(sketch, axis, y + 16, OTHER_HEIGHT, elements)

    def _content_height(self) -> float:
        if self.picture is None:
            return 200.0
        grids = max(g.shape[0] * min(CELL, GRID_HEIGHT / max(g.shape[0], 1)) for g in self.picture.grids)
        lanes = self._lane_height() * len(self.picture.lanes)
        return (
            GRID_TOP
            + max(grids, 106)
            + STRIP_DROP
            + STRIP_HEIGHT
            + 84
            + lanes
            + 44
            + 92 * len(self.picture.others)
            + 24
        )

    # ---- hands -------------------------------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom the strip with Ctrl and the wheel; the plain wheel scrolls the panel."""
        if self.picture is None or not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()
            return
        axis = self._axis(self.picture.strip).zoomed(1.2 ** (event.angleDelta().y() / 120), event.position().x())
        self._zoom = (self.picture.strip.storage, axis.first, axis.span)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Alt and an arrow moves the selected cell; at the grid's edge nothing happens."""
        step, grid = ARROWS.get(Qt.Key(event.key())), self.picture.grids[-1] if self.picture else None
        if step is None or grid is None or grid.cell is None or not event.modifiers() & Qt.KeyboardModifier.AltModifier:
            super().keyPressEvent(event)
            return
        moved = (grid.cell[0] + step[1], grid.cell[1] + step[0])
        row, column = (int(np.clip(place, 0, count - 1)) for place, count in zip(moved, grid.shape, strict=True))
        self.picked.emit(Selection(tensor=grid.tensor, cell=grid.index(row, column)))


_NONE = np.zeros(0, np.int64)
_NUMBER_STEPS = [m * 10**e for e in range(12) for m in (1, 2, 5)]

SPEC = PanelSpec(
    id="storage",
    title="Storage",
    help="Which bytes a tensor reads, in which order, and who else reads them",
    area="centre",
    make=StoragePanel,
)
