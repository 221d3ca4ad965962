"""Where the panels stand: columns, timeline and foot, made from the list of panels."""

from __future__ import annotations

import math
import time
from typing import Any

from PySide6.QtCore import QByteArray, Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QScrollArea, QSplitter, QVBoxLayout, QWidget

from stridescope.app import theme as themes
from stridescope.app.items.stack import Stack
from stridescope.app.moment import Moment
from stridescope.app.panels import PANELS
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.selection import Selection
from stridescope.app.text import tr

# The mock-up's metrics at 1600 × 1000.
COLUMNS = (430, 728, 440)
LEFT_ROWS = (264, 442)
MOST_SCRIPT = 0.55  # of the left column: a longer script takes more of it than the mock-up's, up to so much
FOOT = (1159, 440)
TIMELINE_HEIGHT, FOOT_HEIGHT = 92, 154
AT_ONCE = 0.04  # seconds that panels may take between two looks at mouse and keys
BARE = ("timeline", "story")  # areas without a header


class Workbench(QWidget):
    """All panels. They are told the moment; what they are asked for comes out as signals."""

    pointed = Signal(object)
    picked = Signal(object)
    scrubbed = Signal(int)  # near this step
    visited = Signal(int)  # exactly this step

    def __init__(self) -> None:
        super().__init__()
        self.panels: dict[str, Any] = {spec.id: spec.make() for spec in PANELS}
        self.areas: dict[str, list[PanelSpec]] = {}
        for spec in PANELS:
            self.areas.setdefault(spec.area, []).append(spec)
        self.stacks = {area: self._stack(area) for area in self.areas if area not in BARE}
        self._moment: Moment | None = None
        self._behind: list[str] = []  # areas that do not show the moment yet
        self._next = QTimer(self, singleShot=True, interval=0)
        self._next.timeout.connect(self._present_more)
        self._maximised: str | None = None
        self._moved: set[QSplitter] = set()  # whose sizes a person has chosen
        self._arrange()
        self._connect()
        self.restyle()

    # ---- building ----------------------------------------------------------------------------------------------

    def _stack(self, area: str) -> Stack:
        specs = self.areas[area]
        pages = [_scrolled(self.panels[s.id]) if area == "centre" else self.panels[s.id] for s in specs]
        stack = Stack([tr(s.title) for s in specs], pages)
        for place, spec in enumerate(specs):
            tool = getattr(self.panels[spec.id], "header_tool", None)
            if tool is not None:
                tool.setFixedWidth(110)
                stack.add_tool(place, tool)
        stack.head.growable = area in ("centre", "right", "output")
        stack.shown.connect(lambda _place: self._present_area(area))
        stack.grown.connect(lambda: self.toggle_maximised(area))
        return stack

    def _arrange(self) -> None:
        self._left = _splitter(Qt.Orientation.Vertical, [self.stacks["script"], self.stacks["state"]], LEFT_ROWS)
        columns = [self._left, self.stacks["centre"], self.stacks["right"]]
        self._columns = _splitter(Qt.Orientation.Horizontal, columns, COLUMNS)
        self._foot = _splitter(Qt.Orientation.Horizontal, [self.panels["story"], self.stacks["output"]], FOOT)
        timeline = self.panels["timeline"]
        timeline.setFixedHeight(TIMELINE_HEIGHT)
        self._rows = _splitter(Qt.Orientation.Vertical, [self._columns, timeline, self._foot], (708, 92, FOOT_HEIGHT))
        self._rows.setStretchFactor(0, 1)
        for splitter, sizes in ((self._columns, COLUMNS), (self._foot, FOOT)):
            for place, size in enumerate(sizes):
                splitter.setStretchFactor(place, size)
        for splitter in self._splitters():
            splitter.splitterMoved.connect(lambda *_, moved=splitter: self._moved.add(moved))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._rows)

    def _connect(self) -> None:
        for panel in self.panels.values():
            for name in ("pointed", "picked", "scrubbed", "visited"):
                signal = getattr(panel, name, None)
                if signal is not None:
                    signal.connect(getattr(self, name))

    # ---- showing -----------------------------------------------------------------------------------------------

    def present(self, moment: Moment, seconds: float = math.inf) -> None:
        """Show the moment in every panel that can be seen; the others are told when they come to the front.

        Panels for which there is no time any more follow one by one, between looks at mouse and keys.
        """
        anew = self._moment is None or self._moment.recording is not moment.recording
        self._moment = moment
        self._behind = list(self.areas)
        self._present_more(seconds)
        if anew and self._left not in self._moved:
            self._fit_script()

    def _fit_script(self) -> None:
        """Give a script that is longer than the mock-up's more of the left column."""
        total = sum(self._left.sizes())
        wanted = self.stacks["script"].head.height() + self.panels["editor"].height_of_text()
        least = round(total * LEFT_ROWS[0] / sum(LEFT_ROWS))
        script = max(least, min(wanted, round(total * MOST_SCRIPT)))
        self._left.setSizes([script, total - script])

    def _present_more(self, seconds: float = AT_ONCE) -> None:
        if self._moment is None or self._moment.recording.closed:  # it was let go of while panels still caught up
            self._behind.clear()
        until = time.thread_time() + seconds
        while self._behind:
            self._present_area(self._behind.pop(0))
            if self._behind and time.thread_time() > until:
                self._next.start()
                return
        self._next.stop()

    @property
    def behind(self) -> bool:
        """Whether panels still show the moment before."""
        return bool(self._behind)

    def _present_area(self, area: str) -> None:
        spec = self.front(area)
        if self._moment is not None:
            self.panels[spec.id].present(self._moment)
        if area in self.stacks:
            self.stacks[area].set_heading(*self.panels[spec.id].heading())

    def front(self, area: str) -> PanelSpec:
        """Return the panel in front of an area."""
        specs = self.areas[area]
        return specs[self.stacks[area].pages.currentIndex()] if area in self.stacks else specs[0]

    def show_panel(self, panel: str) -> None:
        """Bring a panel to the front of its area."""
        for area, specs in self.areas.items():
            for place, spec in enumerate(specs):
                if spec.id == panel and area in self.stacks:
                    self.stacks[area].show_page(place)

    def restyle(self) -> None:
        """Take the colours of the active theme."""
        theme = themes.active()
        self.setStyleSheet(themes.stylesheet() + f"QSplitter::handle {{ background: {theme.line}; }}")
        for panel in self.panels.values():
            if hasattr(panel, "restyle"):
                panel.restyle()
            panel.update()

    # ---- arrangement -------------------------------------------------------------------------------------------

    def toggle_maximised(self, area: str) -> None:
        """Let an area fill the window, or give the window back to all."""
        self._maximised = None if self._maximised == area else area
        alone = self._maximised
        in_foot = alone == "output"
        self._left.setVisible(alone is None)
        self.stacks["centre"].setVisible(alone in (None, "centre"))
        self.stacks["right"].setVisible(alone in (None, "right"))
        self._columns.setVisible(not in_foot)
        self.panels["story"].setVisible(not in_foot)

    def area_with_focus(self) -> str:
        """Return the area that holds the focus, else the centre."""
        return next(
            (a for a in ("centre", "right", "output") if self.stacks[a].isAncestorOf(self.focusWidget())), "centre"
        )

    def save_layout(self) -> list[str]:
        """Return the sizes of all columns and rows, "" for those that nobody has moved."""
        states = ((s, bytes(s.saveState().toBase64().data()).decode()) for s in self._splitters())
        return [state if splitter in self._moved else "" for splitter, state in states]

    def restore_layout(self, states: list[str]) -> None:
        """Take sizes that :meth:`save_layout` returned."""
        if len(states) == len(self._splitters()):
            for splitter, state in zip(self._splitters(), states, strict=True):
                if state and splitter.restoreState(QByteArray.fromBase64(state.encode())):
                    self._moved.add(splitter)

    def _splitters(self) -> list[QSplitter]:
        return [self._left, self._columns, self._foot, self._rows]

    def select(self, selection: Selection) -> None:
        """Pin a selection as if a panel had been clicked."""
        self.picked.emit(selection)


def _scrolled(panel: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidget(panel)
    area.setWidgetResizable(True)
    area.setFrameStyle(QFrame.Shape.NoFrame.value)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area


def _splitter(orientation: Qt.Orientation, widgets: list[QWidget], sizes: tuple[int, ...]) -> QSplitter:
    splitter = QSplitter(orientation)
    splitter.setHandleWidth(1)
    splitter.setChildrenCollapsible(False)
    for widget in widgets:
        splitter.addWidget(widget)
    splitter.setSizes(list(sizes))
    return splitter
