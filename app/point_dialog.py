"""The dialog that makes or changes a breakpoint: what to stop at, under which condition, after how many hits."""

from __future__ import annotations

import dataclasses
from typing import Any

from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QCheckBox, QComboBox, QDialog, QDialogButtonBox, QFormLayout, QLineEdit, QSpinBox, QWidget

from stridescope.app.points import CHANGES, WHAT
from stridescope.app.text import tr
from stridescope.app.theme import ui_font
from stridescope.engine.worker.protocol import Breakpoint

MOST = 1_000_000_000
MEBIBYTE = 1 << 20


class PointDialog(QDialog):
    """``point()`` is what was chosen. ``start`` fills the fields: a breakpoint to change, or what one points at.

    ``tensor`` is the breakpoint on the tensor that can be chosen; without one, none can.
    """

    def __init__(self, parent: QWidget, start: Breakpoint, tensor: Breakpoint | None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Breakpoint"))
        self.setFont(ui_font(13))
        self._start, self._tensor = start, tensor
        self.kind, self.change = QComboBox(), QComboBox()
        for box, words in ((self.kind, WHAT), (self.change, CHANGES)):
            for name, said in words.items():
                if name != "tensor" or tensor is not None:
                    box.addItem(tr(said), name)
        self.op, self.condition = QLineEdit(start.op), QLineEdit(start.condition)
        self.op.setPlaceholderText("add, aten::mm, …")
        self.condition.setPlaceholderText("step > 3 and loss > 1")
        self.line, self.mebibytes, self.skip = (
            _number(start.line, 1),
            _number(start.number // MEBIBYTE if start.kind == "reserved" else 0),
            _number(start.skip),
        )
        self.mebibytes.setSuffix(" MiB")
        self.enabled = QCheckBox(tr("stops"))
        self.enabled.setChecked(start.enabled)
        self._arrange()
        self.kind.currentIndexChanged.connect(self._show_fields)
        self.kind.setCurrentIndex(max(0, self.kind.findData(start.kind)))
        self.change.setCurrentIndex(max(0, self.change.findData(start.change)))
        self._show_fields()

    def _arrange(self) -> None:
        self._form = QFormLayout(self)
        rows: tuple[tuple[str, QWidget], ...] = (
            (tr("stop when"), self.kind), (tr("line"), self.line), (tr("op"), self.op), (tr("when it"), self.change),
            (tr("size"), self.mebibytes), (tr("condition"), self.condition), (tr("hits to let pass"), self.skip),
        )  # fmt: skip
        for words, widget in rows:
            widget.setAccessibleName(words)
            self._form.addRow(words, widget)
        self._form.addRow("", self.enabled)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        for button in buttons.buttons():
            button.setIcon(QIcon())  # some desktops put pictures of their own there
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        self._form.addRow(buttons)

    def _show_fields(self) -> None:
        """Show the fields that the chosen kind needs."""
        kind = self.kind.currentData()
        needed: dict[str, QWidget] = {
            "line": self.line,
            "op": self.op,
            "tensor": self.change,
            "reserved": self.mebibytes,
        }
        for name, widget in needed.items():
            self._form.setRowVisible(widget, kind == name)

    def point(self) -> Breakpoint:
        """Return the breakpoint that the fields describe."""
        kind = self.kind.currentData()
        rest: dict[str, Any] = {
            "kind": kind,
            "condition": self.condition.text().strip(),
            "skip": self.skip.value(),
            "enabled": self.enabled.isChecked(),
        }
        if kind == "tensor" and self._tensor is not None:
            return dataclasses.replace(self._tensor, change=self.change.currentData(), **rest)
        if kind == "line":
            return Breakpoint(path=self._start.path, line=self.line.value(), **rest)
        op = self.op.text().strip() if kind == "op" else ""
        return Breakpoint(op=op, number=self.mebibytes.value() * MEBIBYTE if kind == "reserved" else 0, **rest)


def _number(value: int, least: int = 0) -> QSpinBox:
    box = QSpinBox(minimum=least, maximum=MOST)
    box.setValue(value)
    return box
