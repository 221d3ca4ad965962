"""Graph: the grad_fn graph as it grows, and the backward pass as it walks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt, QVariantAnimation
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainterPath, QWheelEvent

from stridescope.app import motion
from stridescope.app import theme as themes
from stridescope.app.items.canvas import Canvas
from stridescope.app.items.labels import Labels
from stridescope.app.items.sketch import Sketch, text_width
from stridescope.app.items.viewport import View, fitted, followed
from stridescope.app.moment import Moment
from stridescope.app.panels.graph_model import GraphEdge, GraphPicture, NodeFace, Queued, picture
from stridescope.app.panels.graph_place import COLUMN, LAYER, NODE_HEIGHT, NODE_WIDTH
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.selection import Selection
from stridescope.app.text import tr
from stridescope.app.theme import Theme

FOOT = 118.0  # pixels at the bottom: ready and waiting, or what is new
WORDS_FROM = 0.34  # scale: smaller nodes hold no readable words
DOTS_FROM = 0.03  # scale: smaller nodes are dots of one picture
READABLE = 0.36  # scale: an automatic fit goes no lower, it follows the current node instead
DETAILS_FROM = 0.7  # scale: smaller nodes hold their name only, at one size
SMALLEST_WORDS = 8.0  # pixels: a name that is longer even so is cut


class GraphPanel(Canvas):
    """Pan by dragging, zoom with the wheel, ``F`` goes to the current node and ``0`` shows all."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Graph"))
        self.picture: GraphPicture | None = None
        self.view = View()
        self._steered = False  # whether the user moved the view: then it no longer follows
        self._drag: QPointF | None = None
        self._before: dict[int, tuple[float, float]] = {}
        self._from, self._share = View(), 1.0
        self._motion = QVariantAnimation(self, startValue=0.0, endValue=1.0, duration=motion.MILLISECONDS)
        self._motion.valueChanged.connect(self._move)

    def present(self, moment: Moment) -> None:
        """Show the graph; nodes glide from where they were."""
        old = self.picture
        shown = picture(moment)
        self._before = self._where_all() if old and len(shown.place.ids) < 2000 else {}
        self.picture = shown
        self.setAccessibleDescription(shown.words())
        changed = old is None or old.place is not shown.place or old.now != shown.now
        self._from = self.view
        if not self._steered:
            self.view = self._following()
        self._share = 1.0
        if changed and old is not None and motion.wanted() and self.isVisible():
            self._share = 0.0
            self._motion.start()
        self.update()

    def heading(self) -> tuple[str, str, str]:
        """Says when a backward pass walks."""
        return (self.picture.title if self.picture else tr("Graph")), "", ""

    def _move(self, share: float) -> None:
        self._share = 1 - (1 - share) ** 3
        self.update()

    def _where_all(self) -> dict[int, tuple[float, float]]:
        assert self.picture is not None
        return {node: self._where(node) for node in self.picture.place.ids}

    def _where(self, node: int) -> tuple[float, float]:
        """Return where a node is now, on its way from where it was."""
        assert self.picture is not None
        place = self.picture.place
        i = place.index[node]
        x, y = float(place.x[i]), float(place.y[i])
        if self._share < 1 and node in self._before:
            ox, oy = self._before[node]
            x, y = ox + (x - ox) * self._share, oy + (y - oy) * self._share
        return x, y

    # ---- the view ----------------------------------------------------------------------------------------------

    def _window(self) -> QRectF:
        return QRectF(14, 14, max(50.0, self.width() - 28), max(50.0, self.height() - FOOT - 28))

    def _graph_area(self) -> QRectF:
        """Return where the graph is drawn: all but the foot, while that has something to say."""
        assert self.picture is not None
        foot = FOOT - 20 if self.picture.ready or self.picture.waiting or self.picture.news else 0
        return QRectF(0, 0, self.width(), self.height() - foot)

    def _world(self) -> QRectF:
        assert self.picture is not None
        place = self.picture.place
        if not place.ids:
            return QRectF()
        left, top = float(place.x.min()), float(place.y.min())
        size = (float(np.ptp(place.x)) + NODE_WIDTH, float(np.ptp(place.y)) + NODE_HEIGHT)
        return QRectF(left - NODE_WIDTH / 2, top - NODE_HEIGHT / 2, *size)

    def _following(self) -> View:
        """Return a view of all while that stays readable, else one that keeps the current node in sight."""
        assert self.picture is not None
        place, followed_node = self.picture.place, self.picture.now or self.picture.selected
        whole = fitted(self._world(), self._window())
        if whole.scale >= (READABLE if followed_node else WORDS_FROM) or not place.ids:
            return whole
        i = place.index.get(followed_node or place.ids[-1], len(place.ids) - 1)
        return followed(self._world(), self._window(), QPointF(float(place.x[i]), float(place.y[i])), READABLE)

    def _current_view(self) -> View:
        return self._from.blended(self.view, self._share) if self._share < 1 else self.view

    def show_all(self) -> None:
        """Fit the whole graph."""
        if self.picture:
            self._steer(fitted(self._world(), self._window()))

    def focus_current(self) -> None:
        """Follow the current node again."""
        self._steered = False
        if self.picture:
            self.view = self._following()
            self.update()

    def _steer(self, view: View) -> None:
        self._steered, self.view, self._share = True, view, 1.0
        self.update()

    # ---- painting ----------------------------------------------------------------------------------------------

    def sketch(self, sketch: Sketch) -> None:
        if self.picture is None or not self.picture.place.ids:
            self._draw_empty(sketch)
            return
        view = self._current_view()
        sketch.painter.save()
        sketch.painter.setClipRect(self._graph_area())
        if view.scale < DOTS_FROM:
            self._draw_dots(sketch, view)
        else:
            visible = self._visible(view)
            self._draw_edges(sketch, view, visible)
            for node in visible:
                self._draw_node(sketch, view, node)
        sketch.painter.restore()
        self._draw_foot(sketch)

    def _draw_empty(self, sketch: Sketch) -> None:
        middle = self.width() / 2
        sketch.text(middle, 120, tr("No graph yet"), "dim", size=14, bold=True, anchor="middle")
        sketch.text(
            middle,
            146,
            tr("It grows with ops on tensors that require grad"),
            "faint",
            anchor="middle",
            room=self.width() - 24,
        )

    def _visible(self, view: View) -> list[int]:
        """Return the nodes in sight, found by NumPy."""
        assert self.picture is not None
        place = self.picture.place
        x, y = place.x * view.scale + view.dx, place.y * view.scale + view.dy
        mx, my = (NODE_WIDTH + COLUMN) * view.scale, (NODE_HEIGHT + LAYER) * view.scale
        seen = (x > -mx) & (x < self.width() + mx) & (y > -my) & (y < self.height() + my)
        return [place.ids[i] for i in np.flatnonzero(seen)]

    def _draw_dots(self, sketch: Sketch, view: View) -> None:
        """Draw a graph too far away for boxes as one picture: a dot per node, brighter where they are dense."""
        assert self.picture is not None
        width, height = self.width(), self.height()
        x = (self.picture.place.x * view.scale + view.dx).astype(np.int64)
        y = (self.picture.place.y * view.scale + view.dy).astype(np.int64)
        seen = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        density = np.bincount(y[seen] * width + x[seen], minlength=width * height).reshape(height, width)
        pixels = _density_colors(density, sketch.theme)
        sketch.painter.drawImage(0, 0, QImage(pixels.data, width, height, width * 4, QImage.Format.Format_RGB32))

    def _draw_edges(self, sketch: Sketch, view: View, visible: list[int]) -> None:
        assert self.picture is not None
        shown = self.picture.edges(visible)
        if len(shown) > 1500:
            lines = [
                QLineF(view.to_screen(*self._where(e.source)), view.to_screen(*self._where(e.target))) for e in shown
            ]
            sketch.painter.setPen(sketch.theme.mix("faint", 0.6))
            sketch.painter.drawLines(lines)
            return
        curves = [(edge, self._curve(view, edge)) for edge in sorted(shown, key=lambda e: e.sent)]
        for edge, curve in curves:
            self._draw_edge(sketch, view, edge, curve)
        if view.scale >= WORDS_FROM:
            self._draw_labels(sketch, view, curves, visible)

    def _curve(self, view: View, edge: GraphEdge) -> QPainterPath:
        (x1, y1), (x2, y2) = self._where(edge.source), self._where(edge.target)
        start, end = view.to_screen(x1, y1 + NODE_HEIGHT / 2), view.to_screen(x2, y2 - NODE_HEIGHT / 2)
        bend = QPointF(0, 35 * view.scale + (y2 - y1 - LAYER) * 0.3 * view.scale)
        path = QPainterPath(start)
        path.cubicTo(start + bend, end - bend, end)
        return path

    def _draw_edge(self, sketch: Sketch, view: View, edge: GraphEdge, curve: QPainterPath) -> None:
        assert self.picture is not None
        color, width = ("bwd", 3.0) if edge.sent or edge.going else ("faint", 1.6)
        dashed = edge.going or not self.picture.real(edge.target)
        sketch.painter.setOpacity(min(self._opacity(edge.source), self._opacity(edge.target)))
        sketch.path(curve, None, color, max(1.0, width * min(1.0, view.scale * 1.4)), dashed=dashed)
        sketch.painter.setOpacity(1.0)

    def _draw_labels(
        self, sketch: Sketch, view: View, curves: list[tuple[GraphEdge, QPainterPath]], visible: list[int]
    ) -> None:
        """Write the gradients beside the edges they went along, where there is room."""
        area = self._graph_area().adjusted(4, 0, -4, 0)
        labels = Labels(area, [self._box_of(view, node) for node in visible], [curve for _, curve in curves])
        size = max(8.0, 11 * view.scale)
        for edge, curve in curves:
            words = edge.label if edge.sent else tr("→ now") if edge.going else ""
            if words and (place := labels.place(curve, QSizeF(text_width(words, size=size, mono=True), size + 3))):
                sketch.text(place.left(), place.bottom() - 4, words, "bwd", size=size, mono=True)

    def _box_of(self, view: View, node: int) -> QRectF:
        centre, w, h = view.to_screen(*self._where(node)), NODE_WIDTH * view.scale, NODE_HEIGHT * view.scale
        return QRectF(centre.x() - w / 2, centre.y() - h / 2, w, h)

    def _draw_node(self, sketch: Sketch, view: View, node: int) -> None:
        assert self.picture is not None
        face, rect = self.picture.face(node), self._box_of(view, node)
        sketch.painter.setOpacity(self._opacity(node))
        self._draw_box(sketch, rect, node, face, view.scale)
        if view.scale >= WORDS_FROM:
            self._draw_words(sketch, rect, face, view.scale)
        sketch.painter.setOpacity(1.0)
        self.spot(rect, Selection(node=self.picture.real(node)), face.tip)

    def _opacity(self, node: int) -> float:
        """A new node appears while those that were there move to their places."""
        fresh = node not in self._before and self._share < 1 and bool(self._before)
        return self._share if fresh else 1.0

    def _draw_box(self, sketch: Sketch, rect: QRectF, node: int, face: NodeFace, scale: float) -> None:
        assert self.picture is not None
        radius = 10 * scale
        if face.role == "none":
            sketch.box(rect, None, "line", radius=radius, width=1.2, dashed=True)
            return
        hue = sketch.theme.hue(face.storage)
        fill = sketch.theme.mix(hue, 0.22, "panel2") if face.role == "leaf" else sketch.color("panel2")
        if face.phase == "done":
            fill = sketch.theme.mix("bwd", 0.22, "panel2")
        stroke: QColor | str = hue if face.role == "leaf" else "line"
        sketch.box(rect, fill, stroke, radius=radius, width=1.2, dashed=face.phase == "waiting" and face.role != "leaf")
        if face.phase == "failed":
            sketch.box(rect, sketch.theme.mix("err", 0.22, "panel2"), "err", radius=radius, width=2)
        if face.freed:
            sketch.box(rect, themes.hatch(sketch.theme.mix("bwd", 0.3, "panel2")), radius=radius)
        if face.role == "node" and face.storage:
            sketch.box(
                QRectF(rect.left() + 7 * scale, rect.top() + 12 * scale, 4 * scale, rect.height() - 24 * scale),
                hue,
                radius=2 * scale,
            )
        real = self.picture.real(node)
        if real == self.picture.selected and real != self.picture.now:
            sketch.box(rect.adjusted(-3, -3, 3, 3), None, sketch.theme.mix(hue, 0.9), radius=radius + 3, width=1.6)
        if real == self.picture.now:
            sketch.box(rect, None, "now", radius=radius, width=2.5)

    def _draw_words(self, sketch: Sketch, rect: QRectF, face: NodeFace, scale: float) -> None:
        x, y = rect.center().x(), rect.center().y()
        color = "dim" if face.role == "none" else "text"
        single = not face.detail or scale < DETAILS_FROM
        ideal = 13 * scale if scale >= DETAILS_FROM else 9.0
        bar = 12 * scale if face.role == "node" and face.storage else 0.0
        title, size = _titled(face.title, ideal, rect.width() - 8 * scale - bar)
        baseline = y + (0.36 * size if single else -4 * scale)
        shift = bar / 2 if single else 0.0
        sketch.text(x + shift, baseline, title, color, size=size, bold=True, anchor="middle", room=rect.width() - bar)
        if not single:
            room = rect.width() - 26 * scale
            sketch.text(x, y + 14 * scale, face.detail, "dim", size=11 * scale, anchor="middle", room=room)

    # ---- the foot ----------------------------------------------------------------------------------------------

    def _draw_foot(self, sketch: Sketch) -> None:
        assert self.picture is not None
        y = self.height() - FOOT + 30
        if self.picture.ready or self.picture.waiting:
            self._draw_queue(sketch, 30, y, tr("ready"), self.picture.ready, hot=True)
            self._draw_queue(sketch, self.width() / 2 + 6, y, tr("waiting"), self.picture.waiting, hot=False)
        elif self.picture.news:
            sketch.text(40, y, tr("new in this step"), "dim")
            for i, line in enumerate(self.picture.news[:3]):
                color = "dim" if i else "text"
                sketch.text(40, y + 24 + i * 21, line, color, mono=True, room=self.width() - 56)

    def _draw_queue(
        self, sketch: Sketch, x: float, y: float, title: str, queue: Sequence[Queued], *, hot: bool
    ) -> None:
        sketch.text(x, y, title, "dim")
        for i, queued in enumerate(queue[:2]):
            self._draw_queued(sketch, QRectF(x, y + 10 + i * 33, self.width() / 2 - 40, 28), queued, hot, not i)
        if len(queue) > 2:
            sketch.text(x + text_width(title) + 8, y, f"+{len(queue) - 2}", "faint")

    def _draw_queued(self, sketch: Sketch, most: QRectF, queued: Queued, hot: bool, first: bool) -> None:
        """Draw a name and how many it awaits; where both do not fit, the name is without its ``Backward``.

        Where even that is too long, it stands alone.
        """
        bare = queued.name.split("Backward")[0]
        alone = text_width(bare) + text_width(queued.awaits) + 32 > most.width()
        awaits = 0.0 if alone else text_width(queued.awaits)
        room = most.width() - awaits - 32
        shown = queued.name if text_width(queued.name) <= room else bare
        name = min(text_width(shown), room)
        box = QRectF(most.left(), most.top(), name + awaits + 32, most.height())
        sketch.box(box, "panel2" if hot else None, "now" if hot and first else "line", dashed=not hot)
        y, color = box.top() + 19, "text" if hot else "dim"
        sketch.text(box.left() + 13, y, shown, color, room=name + 1)
        if not alone:
            sketch.text(box.right() - 13, y, queued.awaits, color, anchor="right")

    # ---- hands -------------------------------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        self._steer(self._current_view().zoomed(1.15 ** (event.angleDelta().y() / 120), event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._drag = event.position()
        if self.spot_at(event.position()):
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None and event.buttons() & Qt.MouseButton.LeftButton:
            moved = event.position() - self._drag
            if math.hypot(moved.x(), moved.y()) > 3 or self._steered:
                self._steer(self._current_view().moved(moved.x(), moved.y()))
                self._drag = event.position()
            return
        super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        self._drag = None

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        self.focus_current()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_F:
            self.focus_current()
        elif event.key() == Qt.Key.Key_0:
            self.show_all()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, _event: object) -> None:
        if self.picture and not self._steered:
            self.view = self._following()


def _titled(name: str, ideal: float, room: float) -> tuple[str, float]:
    """Return how a node's name is written into ``room`` pixels: smaller first, then without its ``Backward``."""
    size = math.floor(2 * ideal * room / text_width(name, size=ideal, bold=True)) / 2
    if size >= SMALLEST_WORDS:
        return name, min(ideal, size)
    return name.split("Backward")[0], SMALLEST_WORDS


def _density_colors(density: np.ndarray, theme: Theme) -> np.ndarray:
    """Return pixels as 0xffRRGGBB: the panel where there is nothing, towards the text colour where it is dense."""
    ramp = [theme.mix("text", 0.35 + min(n, 8) / 13).rgb() for n in range(1, 10)]
    colors = np.array([theme.color("panel").rgb(), *ramp], np.uint32)
    return np.ascontiguousarray(colors[np.minimum(density, 9)])


SPEC = PanelSpec(
    id="graph",
    title="Graph",
    help="The grad_fn graph as it grows, and the backward pass as it walks",
    area="right",
    make=GraphPanel,
)
