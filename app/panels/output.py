"""Output: what the script printed up to the step, and its standard input."""

from __future__ import annotations

import itertools

from PySide6.QtCore import Signal
from PySide6.QtGui import QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from stridescope.app import theme as themes
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.text import tr
from stridescope.app.theme import mono_font
from stridescope.engine.recording.reader import Output, Recording

STDERR = 2
SINGLE = 1500  # newest outputs that can be taken back one by one; older ones are written in bulk
MOST_CHARACTERS = 120_000  # of the bulk: a flood must not drown the window


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
        self.view.setUndoRedoEnabled(False)
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
        self._recording: Recording | None = None
        self._shown: list[Output] = []
        self._bulk = 0  # how many of the shown outputs stand in the bulk
        self._ends: list[int] = []  # where the document ended after each later one

    def present(self, moment: Moment) -> None:
        """Show what was printed up to the step: what is new is appended, what lies ahead is taken back."""
        wanted = moment.recording.output(moment.step)
        if moment.recording is not self._recording or len(wanted) < self._bulk or self._far_ahead(wanted):
            self._recording = moment.recording
            self._start_over(wanted)
        elif len(wanted) < len(self._shown):
            self._take_back(len(wanted))
        for output in wanted[len(self._shown) :]:
            self._write(output.stream, output.text)
            self._ends.append(self.view.document().characterCount())
        self._shown = wanted
        bar = self.view.verticalScrollBar()
        bar.setValue(bar.maximum())

    def heading(self) -> tuple[str, str, str]:
        """The title alone."""
        return tr("Output"), "", ""

    def ask(self, wanted: bool) -> None:
        """Show the input line while the script waits for a line."""
        if self.input.isHidden() is wanted:
            self.input.setVisible(wanted)
            if wanted:
                self.input.setFocus()

    def restyle(self) -> None:
        """Write everything again in the colours of the active theme."""
        self._recording = None

    def _far_ahead(self, wanted: list[Output]) -> bool:
        return len(wanted) - len(self._shown) > SINGLE

    def _start_over(self, wanted: list[Output]) -> None:
        """Write all but the newest outputs in bulk."""
        self.view.clear()
        self._bulk = max(0, len(wanted) - SINGLE // 2)
        self._ends, self._shown = [], wanted[: self._bulk]
        kept, left_out = _newest(self._shown)
        if left_out:
            self._write(STDERR, tr("… older output is left out here, the recording has it all") + "\n")
        for stream, outputs in itertools.groupby(kept, key=lambda output: output.stream):
            self._write(stream, "".join(output.text for output in outputs))

    def _take_back(self, count: int) -> None:
        """Remove the outputs from number ``count`` on."""
        at = count - self._bulk
        end = self._ends[at - 1] if at else 1
        if not at and self._bulk:
            self._start_over(self._shown[:count])
            return
        del self._ends[at:]
        cursor = QTextCursor(self.view.document())
        cursor.setPosition(end - 1)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self._shown = self._shown[:count]

    def _write(self, stream: int, text: str) -> None:
        style = QTextCharFormat()
        style.setForeground(themes.active().color("err" if stream == STDERR else "text"))
        cursor = QTextCursor(self.view.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(text, style)

    def _send(self) -> None:
        self.sent.emit(self.input.text() + "\n")
        self.input.clear()
        self.input.hide()


def _newest(outputs: list[Output]) -> tuple[list[Output], bool]:
    """Return the newest outputs that fit, and whether older ones were left out."""
    total = 0
    for i in range(len(outputs) - 1, -1, -1):
        total += len(outputs[i].text)
        if total > MOST_CHARACTERS:
            return outputs[i + 1 :], True
    return outputs, False


SPEC = PanelSpec(
    id="output",
    title="Output",
    help="What the script printed up to the step",
    area="output",
    make=OutputPanel,
)
