"""Console: ask the script where it stands."""

from __future__ import annotations

import os
import re

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from stridescope.app import theme as themes
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.recorded_values import answer as recorded_answer
from stridescope.app.text import tr
from stridescope.app.theme import mono_font


class ConsolePanel(QWidget):
    """``asked`` gives a number and a text to evaluate; :meth:`answer` shows what came back.

    In the past, or when no script waits, it looks at recorded values and changes nothing.
    """

    asked = Signal(int, str)
    completing = Signal(int, str)

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
        self.line.tabbed.connect(self._complete)
        self.line.copied.connect(self.view.copy)
        self.view.setFocusProxy(self.line)  # a click anywhere, and one types
        self.setFocusProxy(self.line)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.view)
        layout.addWidget(self.line)
        self._written: list[tuple[str, str]] = []  # each text, and the name of its colour
        self._number = 0
        self._moment: Moment | None = None
        self._waiting = False
        self.allow(False)

    def present(self, moment: Moment) -> None:
        """Look at this moment: at the head the worker is asked, in the past the recording."""
        self._moment = moment
        self._invite()

    def heading(self) -> tuple[str, str, str]:
        """The title alone."""
        return tr("Console"), "", ""

    def allow(self, waiting: bool) -> None:
        """Whether a script waits that can be asked."""
        self._waiting = waiting
        self._invite()

    @property
    def _live(self) -> bool:
        return self._waiting and (self._moment is None or self._moment.step == self._moment.head)

    def _invite(self) -> None:
        self.line.setEnabled(self._live or self._moment is not None)
        if self._live:
            words = tr(">>> an expression, in the script's own names")
        elif self._moment is not None:
            words = tr(">>> looks at recorded values, changes nothing")
        else:
            words = tr("works while a script waits at a stop")
        self.line.setPlaceholderText(words)

    def answer(self, _number: int, text: str, ok: bool) -> None:
        """Show the answer to what was asked."""
        if text:
            self._write(text.rstrip("\n"), "text" if ok else "err")

    def _ask(self) -> None:
        text = self.line.text()
        if not text.strip():
            return
        self._number += 1
        self._write(f">>> {text}", "dim")
        self.line.remember(text)
        if self._live:
            self.asked.emit(self._number, text)
        elif self._moment is not None:
            self.answer(self._number, *recorded_answer(self._moment.state, text))

    def _complete(self) -> None:
        text = self.line.text()
        if self._live:
            self.completing.emit(self._number, text)
        elif self._moment is not None:
            self.complete(self._number, _recorded_names(self._moment, text))

    def complete(self, _number: int, names: tuple[str, ...]) -> None:
        """Go on with the last word as far as all ``names`` agree; list them where there are several."""
        text = self.line.text()
        word = _last_word(text)
        fitting = [name for name in names if name.startswith(word)]
        if not fitting:
            return
        self.line.setText(text[: len(text) - len(word)] + os.path.commonprefix(fitting))
        if len(fitting) > 1:
            self._write("  ".join(name.rpartition(".")[2] for name in fitting[:60]), "faint")

    def restyle(self) -> None:
        """Write everything again in the colours of the active theme."""
        self.view.clear()
        for text, color in self._written:
            self._show(text, color)

    def _write(self, text: str, color: str) -> None:
        self._written.append((text, color))
        self._show(text, color)

    def _show(self, text: str, color: str) -> None:
        style = QTextCharFormat()
        style.setForeground(themes.active().color(color))
        cursor = QTextCursor(self.view.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        # The break between two texts comes before the second, so that nothing empty stands at the end.
        cursor.insertText(text if self.view.document().isEmpty() else f"\n{text}", style)
        self.view.moveCursor(QTextCursor.MoveOperation.End)
        self.view.ensureCursorVisible()


def _last_word(text: str) -> str:
    found = re.search(r"[\w.]*$", text)
    return found.group() if found else ""


def _recorded_names(moment: Moment, text: str) -> tuple[str, ...]:
    names = {name for frame in (*moment.state.stack, *moment.state.frames[:1]) for name in frame.names}
    return tuple(sorted(name for name in names if name.startswith(_last_word(text))))


class _Line(QLineEdit):
    """Up and Down walk through what was typed before; Tab behind a word asks how it goes on.

    Copying while nothing of the line is selected is for what stands above it.
    """

    tabbed = Signal()
    copied = Signal()

    def event(self, event: QEvent) -> bool:
        """Take Tab before it moves the focus, where there is something to complete."""
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress and self._completes(event):
            self.tabbed.emit()
            return True
        return super().event(event)

    def _completes(self, event: QKeyEvent) -> bool:
        return event.key() == Qt.Key.Key_Tab and bool(_last_word(self.text()))

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
        if event.matches(QKeySequence.StandardKey.Copy) and not self.hasSelectedText():
            self.copied.emit()
            return
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
