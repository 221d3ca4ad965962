"""Allocator: segments, blocks and who lives there; why the step got its block; memory over steps."""

from __future__ import annotations

import contextlib

import numpy as np
from PySide6.QtCore import QRectF, QTimer
from PySide6.QtGui import QBrush, QColor

from stridescope.app import theme as themes
from stridescope.app.items.canvas import Canvas
from stridescope.app.items.sketch import Sketch
from stridescope.app.moment import Moment
from stridescope.app.panels import memory_curve
from stridescope.app.panels.allocator_model import (
    AllocatorPicture,
    BlockBox,
    Curve,
    Decision,
    Pool,
    SegmentRow,
    picture,
)
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.selection import Selection
from stridescope.app.text import plural, tr
from stridescope.engine.recording.store import RecordingError

LEFT, RIGHT = 40.0, 30.0
HEIGHTS = {"small": 44.0, "large": 60.0}
CAPTION, DECISION = 24.0, 17.0
CURVE_HEIGHT = 200.0
SIGNS = {"✓": "fwd", "✕": "dim", "·": "dim", "!": "err"}
BATCHES_AT_ONCE = 24  # of the memory curve, between two looks at mouse and keys


class AllocatorPanel(Canvas):
    """A pool is a title and its segments; a segment is a bar of blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Allocator"))
        self.picture: AllocatorPicture | None = None
        self._moment: Moment | None = None
        self._reading = QTimer(self, singleShot=True, interval=0)
        self._reading.timeout.connect(self._read_on)

    def present(self, moment: Moment) -> None:
        """Show the allocator's memory; the curve of a long recording that has none yet comes bit by bit."""
        self._moment = moment
        if not moment.recording.read_curve(BATCHES_AT_ONCE):
            self._reading.start()
        self._show(moment)

    def _read_on(self) -> None:
        if self._moment is not None and self.isVisible():
            with contextlib.suppress(RecordingError):  # closed meanwhile, or damaged: other panels say so
                self.present(self._moment)

    def _show(self, moment: Moment) -> None:
        self.picture = picture(moment)
        self.setAccessibleDescription(self.picture.words() if self.picture else "")
        self.setMinimumHeight(int(self._content_height()))
        self.update()

    def heading(self) -> tuple[str, str, str]:
        """The title, and whether the GPU is a simulated one."""
        device = str(self._moment.recording.meta.get("device", "")) if self._moment and self.picture else ""
        return tr("Allocator"), tr("Simulated GPU") if "(simulated)" in device else "", ""

    def _content_height(self) -> float:
        if self.picture is None:
            return 200
        pools = sum(40 + len(p.segments) * (HEIGHTS[p.name] + CAPTION) for p in self.picture.pools)
        return 28 + self._decision_height() + pools + CURVE_HEIGHT + 60

    def _decision_height(self) -> float:
        decision = self.picture.decision if self.picture else None
        return 0 if decision is None else DECISION * (len(decision.steps) + 1) + 26

    def sketch(self, sketch: Sketch) -> None:
        if self.picture is None:
            middle = self.width() / 2
            sketch.text(middle, 120, tr("No device memory yet"), "dim", size=14, bold=True, anchor="middle")
            sketch.text(middle, 146, tr('Tensors on device="cuda" live here'), "faint", anchor="middle")
            return
        y = 28.0
        if self.picture.decision is not None:
            y = self._draw_reasons(sketch, self.picture.decision, y)
        for pool in self.picture.pools:
            y = self._draw_pool(sketch, pool, y)
        self._draw_curve(sketch, self.picture.curve, y)

    def _draw_reasons(self, sketch: Sketch, decision: Decision, y: float) -> float:
        """The last request step by step: what was looked at, what became of it, what was done."""
        height = self._decision_height()
        sketch.box(QRectF(LEFT, y - 18, self.width() - LEFT - RIGHT, height - 10), None, "now")
        sketch.text(LEFT + 10, y, decision.title, "now", bold=True, room=self.width() - LEFT - RIGHT - 20)
        line = y
        for sign, words in decision.steps:
            line += DECISION
            color = SIGNS[sign]
            sketch.text(LEFT + 12, line, sign, color, bold=True)
            sketch.text(LEFT + 30, line, words, "text" if sign == "✓" else color, room=self.width() - LEFT - RIGHT - 40)
        return y + height + 8

    def _draw_pool(self, sketch: Sketch, pool: Pool, y: float) -> float:
        end = sketch.text(LEFT, y, pool.title, bold=True)
        sketch.text(LEFT + end + 20, y, pool.rule, "dim", room=self.width() - LEFT - end - 40)
        y += 12
        for row in pool.segments:
            self._draw_segment(sketch, row, y, HEIGHTS[pool.name])
            y += HEIGHTS[pool.name] + CAPTION
        if pool.hidden:
            sketch.text(
                LEFT, y + 4, plural(pool.hidden, "and {n} more segment", "and {n} more segments"), "dim", size=11
            )
        return y + 28

    def _draw_segment(self, sketch: Sketch, row: SegmentRow, y: float, height: float) -> None:
        assert self.picture is not None
        width = self.width() - LEFT - RIGHT
        sketch.box(QRectF(LEFT, y, width, height), None, "line")
        sketch.text(LEFT, y + height + 14, row.caption, "faint", size=10.5, mono=True)
        widths = bar_widths(np.array([block.share for block in row.blocks]), width)
        lefts = LEFT + np.concatenate(([0.0], np.cumsum(widths)[:-1]))
        for block, x, w in zip(row.blocks, lefts.tolist(), widths.tolist(), strict=True):
            rect = QRectF(x + 1, y + 1, max(1.5, w - 2), height - 2)
            self._draw_block(sketch, block, rect)
            self.spot(rect, Selection(storage=block.storage), block.tip)
            if self.picture.decision and self.picture.decision.address == block.address:
                sketch.box(rect.adjusted(-1, -1, 1, 1), None, "now", width=2.5)

    def _draw_block(self, sketch: Sketch, block: BlockBox, rect: QRectF) -> None:
        hue = sketch.theme.hue(block.storage)
        stroke: QColor | str = "line" if block.kind == "free" else hue
        sketch.box(rect, _fill(sketch, block, hue), stroke, dashed=block.kind == "free")
        if block.kind == "free" and block.verdict == "refused":
            x, y = rect.right() - 14, rect.top() + 14
            sketch.text(x, y, "✕", "dim", anchor="middle", bold=True)
        if self.picture and block.storage and block.storage == self.picture.selected:
            sketch.box(rect.adjusted(1.5, 1.5, -1.5, -1.5), None, "text", width=1.6)
        if rect.width() > 34:
            color = "dim" if block.kind == "free" else "text"
            sketch.text(
                rect.left() + 8, rect.center().y() + 4, block.label, color, size=11.5, mono=True, room=rect.width() - 12
            )

    def _draw_curve(self, sketch: Sketch, curve: Curve, y: float) -> None:
        sketch.text(LEFT, y, tr("memory over steps"), bold=True)
        height = max(CURVE_HEIGHT, self.height() - y - 60)
        memory_curve.draw(sketch, curve, QRectF(LEFT, y + 40, self.width() - LEFT - RIGHT, height - 30))
        left = LEFT + 8
        for words, color in curve.notes:
            left += sketch.text(left, y + 22, words, color) + 20


def bar_widths(shares: np.ndarray, width: float) -> np.ndarray:
    """Return widths true to ``shares``, save that the smallest stay wide enough to be seen and named."""
    least = min(44.0, width / max(len(shares), 1) / 2)
    wanted = np.maximum(shares * width, least)
    spare = wanted - least
    excess = wanted.sum() - width
    return wanted - spare * (excess / spare.sum()) if excess > 0 and spare.sum() > 0 else wanted


def _fill(sketch: Sketch, block: BlockBox, hue: QColor) -> QColor | QBrush:
    if block.kind == "free":
        return sketch.color("free")
    if block.kind == "pending":
        return themes.hatch(sketch.theme.mix(hue, 0.5))
    return sketch.theme.mix(hue, 0.6)


SPEC = PanelSpec(
    id="allocator",
    title="Allocator",
    help="Segments and blocks of the caching allocator, and why it chose them",
    area="centre",
    make=AllocatorPanel,
)
