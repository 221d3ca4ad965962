"""Timeline: the whole run as lanes; drag to scrub, Ctrl and wheel to zoom."""

from __future__ import annotations

import dataclasses

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainterPath, QWheelEvent

from stridescope.app.items.canvas import Canvas
from stridescope.app.items.marked import runs
from stridescope.app.items.sketch import Sketch
from stridescope.app.items.strip import Axis
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.panels.timeline_model import Flag, StepLane, TimelinePicture, picture
from stridescope.app.text import tr

LEFT, RIGHT = 90.0, 24.0
WIDEST_STEP = 200.0
FIRST_LANE, LANE_PITCH, LANE_HEIGHT = 18.0, 20.0, 13.0
RECTS_UP_TO = 1500  # steps in sight; more are drawn as runs of pixels


class TimelinePanel(Canvas):
    """``scrubbed`` gives the step under the mouse while it is dragged."""

    scrubbed = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Timeline"))
        self.picture: TimelinePicture | None = None
        self._first, self._span = 0.0, 0.0

    def present(self, moment: Moment) -> None:
        """Show the run and where we look."""
        self.picture = picture(moment)
        self.setAccessibleDescription(self.picture.words())
        if self._span and not self._sees(self.picture.view):
            self._first = float(np.clip(self.picture.view - self._span / 2, 0, max(0, self.picture.steps - self._span)))
        self.update()

    def heading(self) -> tuple[str, str, str]:
        """The title alone."""
        return tr("Timeline"), "", ""

    def _sees(self, step: int) -> bool:
        return self._first <= step < self._first + self._span

    def axis(self) -> Axis:
        """Return the axis of steps as it is zoomed now."""
        count = self.picture.steps if self.picture else 1
        return Axis(
            LEFT, max(40.0, self.width() - LEFT - RIGHT), count, self._first, min(self._span, count), WIDEST_STEP
        )

    def sketch(self, sketch: Sketch) -> None:
        if self.picture is None:
            return
        axis = self.axis()
        for row, lane in enumerate(self.picture.lanes):
            self._draw_lane(sketch, axis, lane, FIRST_LANE + row * self._lane_pitch())
        for flag in self.picture.flags:
            self._draw_flag(sketch, axis, flag)
        self._draw_cursor(sketch, axis)

    def _lane_pitch(self) -> float:
        lanes = len(self.picture.lanes) if self.picture else 3
        return min(22.0, (self.height() - FIRST_LANE - 6) / lanes)

    def _draw_lane(self, sketch: Sketch, axis: Axis, lane: StepLane, y: float) -> None:
        assert self.picture is not None
        sketch.text(14, y + 11, lane.name, "dim", size=11)
        seen = lane.steps[
            np.searchsorted(lane.steps, axis.first - 1) : np.searchsorted(lane.steps, axis.visible().stop)
        ]
        past = int(np.searchsorted(seen, self.picture.view, side="right"))
        for part, opacity in ((seen[:past], 0.95), (seen[past:], 0.32)):
            sketch.painter.setOpacity(opacity)
            self._draw_steps(sketch, axis, lane, part, y)
        sketch.painter.setOpacity(1)

    def _draw_steps(self, sketch: Sketch, axis: Axis, lane: StepLane, steps: np.ndarray, y: float) -> None:
        height = min(LANE_HEIGHT, self._lane_pitch() - 5)
        if len(steps) > RECTS_UP_TO:
            columns = ((steps - axis.first) * axis.pitch).astype(np.int64)
            filled = np.bincount(columns[columns >= 0], minlength=int(axis.width) + 1) > 0
            for start, end in runs(filled):
                sketch.painter.fillRect(QRectF(LEFT + start, y, end - start, height), sketch.color(lane.color))
            return
        gaps = np.diff(steps, append=steps[-1] + 1e9) if len(steps) else steps
        for step, gap in zip(steps.tolist(), gaps.tolist(), strict=True):
            x = axis.x(step)
            width = max(1.5, min(lane.widest, gap * axis.pitch - 3, axis.right - x))
            sketch.box(QRectF(x, y, width, height), lane.color, radius=2)

    def _draw_flag(self, sketch: Sketch, axis: Axis, flag: Flag) -> None:
        if flag.step not in axis.visible():
            return
        x, bottom = axis.x(flag.step), self.height() - 8.0
        sketch.line(x, 8, x, bottom, "ok", 1)
        path = QPainterPath(QPointF(x, 8))
        for dx, dy in ((8, 8), (5, 12), (8, 16), (0, 16)):
            path.lineTo(x + dx, dy)
        sketch.path(path, "ok")
        sketch.text(x + 12, 16, flag.name, "ok", size=10.5)

    def _draw_cursor(self, sketch: Sketch, axis: Axis) -> None:
        assert self.picture is not None
        if self.picture.head > self.picture.view and self.picture.head in axis.visible():
            x = axis.x(self.picture.head + 1)
            sketch.line(x, FIRST_LANE - 4, x, self.height() - 8.0, "dim", 1)
        step = max(0, self.picture.view)
        if step not in axis.visible():
            return
        x = axis.x(step)
        sketch.line(x, 8, x, self.height() - 6.0, "now", 2)
        path = QPainterPath(QPointF(x - 7, 4))
        path.lineTo(x + 7, 4)
        path.lineTo(x, 14)
        sketch.path(path, "now")

    def step_at(self, x: float) -> int:
        """Return the step under pixel ``x``, the nearest one beyond the ends."""
        axis = self.axis()
        return int(np.clip(round((x - LEFT) / axis.pitch + axis.first), 0, axis.count - 1))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.scrubbed.emit(self.step_at(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.scrubbed.emit(self.step_at(event.position().x()))

    def wheelEvent(self, event: QWheelEvent) -> None:
        axis = self.axis()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            axis = axis.zoomed(1.2 ** (event.angleDelta().y() / 120), event.position().x())
        elif self._span:
            shift = -event.angleDelta().y() / 120 * self._span * 0.1
            axis = dataclasses.replace(axis, first=float(np.clip(axis.first + shift, 0, axis.count - axis.span)))
        self._first, self._span = axis.first, axis.span if axis.span < axis.count else 0.0
        self.update()

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        """Show the whole run again."""
        self._first = self._span = 0.0
        self.update()


SPEC = PanelSpec(
    id="timeline",
    title="Timeline",
    help="The whole run: lines, ops and backward nodes; drag to scrub",
    area="timeline",
    make=TimelinePanel,
)
