"""Explanation: what the step did, in words."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from stridescope.app import theme as themes
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.panels.story_model import Story, story
from stridescope.app.text import tr
from stridescope.app.theme import ui_font


class StoryPanel(QWidget):
    """A heading and two paragraphs; the text can be selected and copied."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Explanation"))
        self._labels = [QLabel() for _ in range(3)]
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 11, 16, 8)
        layout.setSpacing(6)
        for label, size in zip(self._labels, (12, 13, 13), strict=True):
            label.setFont(ui_font(size, bold=size == 12))
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.RichText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            layout.addWidget(label)
        layout.addStretch(1)
        self.restyle()

    def present(self, moment: Moment) -> None:
        """Tell the moment."""
        self.show_story(story(moment))

    def show_story(self, told: Story) -> None:
        """Show a story."""
        for label, text in zip(self._labels, (told.title, told.body, told.hint), strict=True):
            label.setText(themes.rich(text))
            label.setVisible(bool(text))
        self.setAccessibleDescription(told.words())

    def heading(self) -> tuple[str, str, str]:
        """The title alone."""
        return tr("Explanation"), "", ""

    def restyle(self) -> None:
        """Take the colours of the active theme."""
        theme = themes.active()
        for label, color in zip(self._labels, (theme.now, theme.text, theme.dim), strict=True):
            label.setStyleSheet(f"color: {color}")


SPEC = PanelSpec(
    id="story",
    title="Explanation",
    help="What the step did, in words",
    area="story",
    make=StoryPanel,
)
