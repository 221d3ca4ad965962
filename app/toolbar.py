"""The toolbar of the mock-up, made from the actions."""

from __future__ import annotations

from PySide6.QtGui import QAction, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from stridescope.app import theme as themes
from stridescope.app.actions import BY_ID, key_sign, title
from stridescope.app.items.controls import ActionButton, Chip, Choice, Rule
from stridescope.app.text import tr

HEIGHT = 46
LEFT = ("open", "|", "back", "step", "into", "out", "run", "pause", "stop", "|")
RIGHT = ("bookmark", "present", "export", "menu")
BARE = ("pause", "stop", "menu")  # only an icon
KEYLESS = ("open", "export")
COMPACT_BELOW, NO_DEVICE_BELOW, NO_SPEED_BELOW, NO_EXTRAS_BELOW = 1500, 1380, 1240, 1130
NARROWEST = 920


class Toolbar(QWidget):
    """Buttons for actions, the choice of grains, and chips for speed, device and the step."""

    def __init__(self, actions: dict[str, QAction]) -> None:
        super().__init__()
        self.setFixedHeight(HEIGHT)
        self.setMinimumWidth(NARROWEST)
        self.speed, self.device, self.step = Chip(tr("speed")), Chip(tr("device")), Chip(tr("step"))
        self.buttons: dict[str, ActionButton] = {}
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(12, 0, 12, 1)
        self._layout.setSpacing(8)
        for name in LEFT:
            self._add(name, actions)
        grains = [actions[f"grain_{grain}"] for grain in ("line", "op", "event")]
        for widget in (Choice(grains, [tr("Line"), tr("Op"), tr("Event")]), Rule(), self.speed, self.device):
            self._layout.addWidget(widget)
        self._layout.addStretch(1)
        self._layout.addWidget(self.step)
        for name in RIGHT:
            self._add(name, actions)

    def _add(self, name: str, actions: dict[str, QAction]) -> None:
        if name == "|":
            self._layout.addWidget(Rule())
            return
        row = BY_ID.get(name)
        words = "" if name in BARE else title(row) if row else ""
        key = key_sign(row) if row and name not in BARE + KEYLESS else ""
        button = ActionButton(actions[name], "menu" if row is None else row.icon, words, key, hot=name == "step")
        self.buttons[name] = button
        self._layout.addWidget(button)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the keys out of the buttons, then the chips, where the window is narrow."""
        super().resizeEvent(event)
        for button in self.buttons.values():
            button.compact(self.width() < COMPACT_BELOW)
        self.speed.setVisible(self.width() >= NO_SPEED_BELOW)
        self.device.setVisible(self.width() >= NO_DEVICE_BELOW)
        for name in ("bookmark", "present", "export"):
            self.buttons[name].setVisible(self.width() >= NO_EXTRAS_BELOW)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        theme = themes.active()
        painter.fillRect(self.rect(), theme.color("panel"))
        painter.fillRect(0, self.height() - 1, self.width(), 1, theme.color("line"))
        painter.end()
