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
        self._layout.setContentsMargins(11, 0, 11, 1)
        self._layout.setSpacing(7)
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
        super().resizeEvent(event)
        self.fit()

    def fit(self) -> None:
        """Leave out what there is no room for: first the keys in the buttons, then chips, then the last buttons."""
        extras = [self.buttons[name] for name in ("bookmark", "present", "export")]
        for left_out in range(5):
            for button in self.buttons.values():
                button.compact(left_out >= 1)
            self.device.setVisible(left_out < 2)
            self.speed.setVisible(left_out < 3)
            for button in extras:
                button.setVisible(left_out < 4)
            if self._needed() <= self.width():
                return

    def _needed(self) -> int:
        items = (self._layout.itemAt(i) for i in range(self._layout.count()))
        widgets = [item.widget() for item in items if item is not None]
        shown = [widget for widget in widgets if widget is not None and not widget.isHidden()]
        margins = self._layout.contentsMargins()
        room = sum(widget.sizeHint().width() for widget in shown) + self._layout.spacing() * (len(shown) - 1)
        return room + margins.left() + margins.right()

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            theme = themes.active()
            painter.fillRect(self.rect(), theme.color("panel"))
            painter.fillRect(0, self.height() - 1, self.width(), 1, theme.color("line"))
