"""Output: what the script printed up to the step, and its standard input."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from stridescope.app import theme as themes
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.text import tr
from stridescope.app.theme import mono_font

STDERR = 2
MOST_CHARACTERS = 400_000  # of the newest output: a flood must not drown the window


class OutputPanel(QWidget):
    """``sent`` gives a line typed for the script's standard input."""

    sent = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.view = QPlainTextEdit(readOnly=True)
        self.view.setAccessibleName(tr("Output"))
        self.view.setFrameStyle(0)
        self.view.setFont(mono_font(12))
        self.view.setPlaceholderText(tr("What the script prints appears here"))
        self.view.document().setDocumentMargin(10)
        self.input = QLineEdit(placeholderText=tr("The script waits for input: type a line and press Enter"))
        self.input.setAccessibleName(tr("standard input"))
        self.input.setFont(mono_font(12))
        self.input.hide()
        self.input.returnPressed.connect(self._send)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.view)
        layout.addWidget(self.input)
        self._shown: list[tuple[int, str]] = []

    def present(self, moment: Moment) -> None:
        """Show what was printed up to the step; only what is new is appended."""
        wanted = [(o.stream, o.text) for o in moment.recording.output(moment.step)]
        wanted = _newest(wanted)
        common = len(self._shown)
        if wanted[:common] != self._shown:
            self.view.clear()
            common = 0
        for stream, text in wanted[common:]:
            self._append(stream, text)
        self._shown = wanted

    def heading(self) -> tuple[str, str, str]:
        """The title alone."""
        return tr("Output"), "", ""

    def ask(self, wanted: bool) -> None:
        """Show the input line while the script waits for a line."""
        self.input.setVisible(wanted)
        if wanted:
            self.input.setFocus()

    def restyle(self) -> None:
        """Write everything again in the colours of the active theme."""
        shown, self._shown = self._shown, []
        self.view.clear()
        for stream, text in shown:
            self._append(stream, text)
        self._shown = shown

    def _append(self, stream: int, text: str) -> None:
        style = QTextCharFormat()
        style.setForeground(themes.active().color("err" if stream == STDERR else "text"))
        cursor = QTextCursor(self.view.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(text, style)
        bar = self.view.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _send(self) -> None:
        self.sent.emit(self.input.text() + "\n")
        self.input.clear()
        self.input.hide()


def _newest(outputs: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the newest outputs that fit, the first with a note when older ones were left out."""
    total = 0
    for i in range(len(outputs) - 1, -1, -1):
        total += len(outputs[i][1])
        if total > MOST_CHARACTERS:
            return [(STDERR, tr("… older output is left out here, the recording has it all") + "\n"), *outputs[i + 1 :]]
    return outputs


SPEC = PanelSpec(
    id="output",
    title="Output",
    help="What the script printed up to the step",
    area="output",
    make=OutputPanel,
)
