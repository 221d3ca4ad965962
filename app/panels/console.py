"""Console: ask the script where it stands."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from stridescope.app import theme as themes
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.text import tr
from stridescope.app.theme import mono_font


class ConsolePanel(QWidget):
    """``asked`` gives a number and a text to evaluate; :meth:`answer` shows what came back."""

    asked = Signal(int, str)

    def __init__(self) -> None:
        super().__init__()
        self.view = QPlainTextEdit(readOnly=True)
        self.view.setAccessibleName(tr("Console"))
        self.view.setFrameStyle(0)
        self.view.setFont(mono_font(12))
        self.view.document().setDocumentMargin(10)
        self.line = _Line()
        self.line.setAccessibleName(tr("expression to evaluate"))
        self.line.returnPressed.connect(self._ask)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.view)
        layout.addWidget(self.line)
        self._number = 0
        self.allow(False)

    def present(self, moment: Moment) -> None:
        """The console speaks with the worker, not with the recording: there is nothing to show."""

    def heading(self) -> tuple[str, str, str]:
        """The title alone."""
        return tr("Console"), "", ""

    def allow(self, waiting: bool) -> None:
        """Take expressions while a script waits."""
        self.line.setEnabled(waiting)
        words = (
            tr(">>> an expression, in the script's own names")
            if waiting
            else tr("works while a script waits at a stop")
        )
        self.line.setPlaceholderText(words)

    def answer(self, _number: int, text: str, ok: bool) -> None:
        """Show the answer to what was asked."""
        if text:
            self._write(text.rstrip("\n") + "\n", "text" if ok else "err")

    def _ask(self) -> None:
        text = self.line.text()
        if not text.strip():
            return
        self._number += 1
        self._write(f">>> {text}\n", "dim")
        self.line.remember(text)
        self.asked.emit(self._number, text)

    def _write(self, text: str, color: str) -> None:
        style = QTextCharFormat()
        style.setForeground(themes.active().color(color))
        cursor = QTextCursor(self.view.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(text, style)
        self.view.verticalScrollBar().setValue(self.view.verticalScrollBar().maximum())


class _Line(QLineEdit):
    """Up and Down walk through what was typed before."""

    def __init__(self) -> None:
        super().__init__()
        self.setFont(mono_font(12))
        self._typed: list[str] = []
        self._at = 0

    def remember(self, text: str) -> None:
        """Keep ``text`` for later and clear the line."""
        self._typed.append(text)
        self._at = len(self._typed)
        self.clear()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()), 0)
        if not step or not self._typed:
            super().keyPressEvent(event)
            return
        self._at = max(0, min(len(self._typed), self._at + step))
        self.setText(self._typed[self._at] if self._at < len(self._typed) else "")


SPEC = PanelSpec(
    id="console",
    title="Console",
    help="Ask the script where it stands",
    area="output",
    make=ConsolePanel,
)
