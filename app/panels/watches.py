"""Watches: expressions, evaluated where the script stands; in the past worked out from what was recorded."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit

from stridescope.app.items.table import Table, TableRow
from stridescope.app.moment import Moment
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.recorded_values import answer
from stridescope.app.text import plural, tr

FIRST_NUMBER = 1 << 20  # the console's questions have lower numbers
KEPT = 10_000  # answers


class WatchesPanel(Table):
    """``asked`` gives a number and an expression to evaluate at the head; :meth:`answer` takes what came back."""

    asked = Signal(int, str)
    changed = Signal()

    def __init__(self) -> None:
        super().__init__((tr("expression"), tr("value")), tr("Watches"))
        self.expressions: list[str] = []
        self._answers: dict[tuple[int, str], tuple[str, bool]] = {}
        self._questions: dict[int, tuple[int, str]] = {}
        self._moment: Moment | None = None
        self._waiting = False
        self.own_keys = frozenset({Qt.Key.Key_Delete, Qt.Key.Key_Backspace})
        self.line = self.header_tool = QLineEdit(placeholderText=tr("watch…"))
        self.line.setAccessibleName(tr("expression to watch"))
        self.line.returnPressed.connect(self._add)
        self.rows.tip = lambda key: self.rows.rows[key - 1].cells[1] if 0 < key <= len(self.rows.rows) else ""

    def allow(self, waiting: bool) -> None:
        """Whether a script waits that can be asked."""
        self._waiting = waiting

    def forget(self) -> None:
        """Another run begins: what was answered belongs to the last one."""
        self._answers.clear()
        self._questions.clear()

    def present(self, moment: Moment) -> None:
        """Show what the expressions are worth at this moment; at the head, ask the script."""
        self._moment = moment
        for text in self.expressions:
            if self._waiting and moment.step == moment.head and (moment.step, text) not in self._answers:
                self._ask(moment.step, text)
        self._show()

    def answer(self, number: int, text: str, ok: bool) -> None:
        """Keep and show an answer."""
        if (question := self._questions.pop(number, None)) is not None:
            self._answers[question] = (text, ok)
            while len(self._answers) > KEPT:
                del self._answers[next(iter(self._answers))]
            self._show()

    def heading(self) -> tuple[str, str, str]:
        """How many there are."""
        count = len(self.expressions)
        return tr("Watches"), plural(count, "{n} expression", "{n} expressions") if count else "", ""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete removes the expression of the row."""
        place = self.currentIndex().row()
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace) and 0 <= place < len(self.expressions):
            del self.expressions[place]
            self.changed.emit()
            self._show()
        else:
            super().keyPressEvent(event)

    def _add(self) -> None:
        text = self.line.text().strip()
        if text and text not in self.expressions:
            self.expressions.append(text)
            self.changed.emit()
        self.line.clear()
        if self._moment is not None:
            self.present(self._moment)

    def _ask(self, step: int, text: str) -> None:
        if (step, text) not in self._questions.values():
            number = FIRST_NUMBER + len(self._answers) + len(self._questions)
            while number in self._questions:
                number += 1
            self._questions[number] = (step, text)
            self.asked.emit(number, text)

    def _show(self) -> None:
        rows = []
        for place, text in enumerate(self.expressions, 1):
            value, ok = self._value(text)
            rows.append(TableRow(place, (text, value.strip().rpartition("\n")[2] if not ok else value), quiet=not ok))
        self.show_rows(rows)
        self.fit_columns((140,))

    def _value(self, text: str) -> tuple[str, bool]:
        if self._moment is None:
            return "", True
        known = self._answers.get((self._moment.step, text))
        return known or answer(self._moment.state, text)


SPEC = PanelSpec(
    id="watches",
    title="Watches",
    help="Expressions, worth what they are at the step you look at",
    area="state",
    make=WatchesPanel,
)
