"""The script: breakpoints in the gutter, the current line, the sub-expression that runs, what each line gave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QTextEdit, QToolTip, QWidget

from stridescope.app import theme as themes
from stridescope.app.items.python_colors import PythonColors
from stridescope.app.items.sketch import Sketch, text_width
from stridescope.app.moment import Moment
from stridescope.app.moved_lines import lines_before
from stridescope.app.panels.editor_model import EditorPicture, Mark, Note, file_name, is_python, picture
from stridescope.app.panels.hover import hover_words
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.script_file import lines_on_disk
from stridescope.app.selection import Selection
from stridescope.app.text import tr
from stridescope.app.theme import mono_font
from stridescope.engine.recording.lines import source_lines

GUTTER, TOP = 52, 5
LINE_HEIGHT = 24.0
TAB = 4  # columns
TEXT_DROP = 3.0


class Editor(QTextEdit):
    """Shows the file that runs; editable while it is a script on disk."""

    breakpoint_toggled = Signal(str, int)
    picked = Signal(object)
    lines_moved = Signal(str, int, bool, int)  # of a path: from which line on, with that one, by how many

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Script"))
        self.setAcceptRichText(False)
        self.setReadOnly(True)
        self.setFrameStyle(0)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click on the text takes it, too, but none on the gutter
        self.setLineWrapMode(QTextEdit.LineWrapMode.NoWrap)
        self.setFont(mono_font(13))
        self.setTabStopDistance(TAB * text_width(" ", size=13, mono=True))
        self.document().setDocumentMargin(0)
        self.setViewportMargins(GUTTER, TOP, 0, 0)
        self.picture: EditorPicture | None = None
        self._moment: Moment | None = None
        self.breakpoints: dict[str, set[int]] = {}
        self._shown = ""
        self._blocks, self._typed = 1, True  # lines of the document; is it a person who changes it?
        self._edited = False  # whether the text is another than the one that runs, be it saved or not
        self._before: list[int] = []  # the lines of an edited text in the text that runs
        self.document().contentsChange.connect(self._follow_edit)
        self._colors = PythonColors(self.document())
        self._gutter = _Gutter(self)
        self.verticalScrollBar().valueChanged.connect(self._gutter.update)

    def present(self, moment: Moment) -> None:
        """Show the file, line and sub-expression of this moment."""
        self._moment = moment
        self.show_picture(picture(moment))

    def show_picture(self, shown: EditorPicture | None) -> None:
        """Show marks over a text; the text is only replaced when it is another one."""
        before = self.picture
        self.picture = shown
        if shown and shown.text != self._shown:
            self._colors.colour(is_python(shown.path))
            self.show_text(shown.text)
        if shown and shown.line and (before is None or before.line != shown.line):
            self._reveal(shown.line)
        elif shown and not shown.line and before and before.line:  # before the first line
            self.verticalScrollBar().setValue(0)
        self.viewport().update()
        self._gutter.update()

    def show_text(self, text: str) -> None:
        """Replace the text and give every line the mock-up's height."""
        self._shown, self._typed = text, False
        height = QTextBlockFormat()
        height.setLineHeight(LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()  # laid out once, for a listing of many lines
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.removeSelectedText()
        cursor.setBlockFormat(height)
        cursor.insertText(text)
        cursor.endEditBlock()
        self.moveCursor(QTextCursor.MoveOperation.Start)
        self.document().clearUndoRedoStacks()
        self.document().setModified(False)
        self._blocks, self._typed, self._edited = self.document().blockCount(), True, False

    def height_of_text(self) -> int:
        """Return how many pixels show the whole text."""
        return TOP + round(self.document().blockCount() * LINE_HEIGHT) + self.horizontalScrollBar().sizeHint().height()

    def _follow_edit(self, position: int, _removed: int, _added: int) -> None:
        """Tell which lines an edit moves, so that breakpoints stay on theirs."""
        if not self._typed or self.picture is None:
            return
        self._edited, self._before = True, []
        blocks, self._blocks = self._blocks, self.document().blockCount()
        if self._blocks != blocks:
            block = self.document().findBlock(position)
            from_start = position == block.position()
            self.lines_moved.emit(self.picture.path, block.blockNumber() + 1, from_start, self._blocks - blocks)

    def lines_of(self, path: str) -> Sequence[str]:
        """Return the lines of a file as they are here when they are edited, or else on disk."""
        return self._lines if self._is_edited(path) else lines_on_disk(path)

    def run_line(self, path: str, line: int) -> int:
        """Return which line of the text that runs a line of the edited text is, 0 for a new one."""
        if not self._is_edited(path):
            return line
        before = self._lines_before
        return before[line - 1] if 0 < line <= len(before) else 0

    def _is_edited(self, path: str) -> bool:
        return self._edited and self.picture is not None and self.picture.path == path

    @property
    def _lines(self) -> list[str]:
        return source_lines(self.toPlainText())

    @property
    def _lines_before(self) -> list[int]:
        if not self._before:
            self._before = lines_before(source_lines(self._shown), self._lines)
        return self._before

    def _block(self, line: int) -> QTextBlock:
        """Return where a line of the text that runs is now; an invalid block where it is deleted."""
        if self._edited:
            before = self._lines_before
            line = before.index(line) + 1 if line in before else 0
        return self.document().findBlockByNumber(line - 1)

    def heading(self) -> tuple[str, str, str]:
        """File name at the left, what runs at the right."""
        if self.picture is None:
            return tr("Script"), "", ""
        edited = " · " + tr("edited: restart to run it") if self.document().isModified() else ""
        return file_name(self.picture.path), edited, self.picture.where

    def restyle(self) -> None:
        """Take the colours of the active theme."""
        modified = self.document().isModified()
        self._colors.restyle()
        self.document().setModified(modified)

    def redraw_gutter(self) -> None:
        """Draw the breakpoints again."""
        self._gutter.update()

    def block_rect(self, block: QTextBlock) -> QRectF:
        """Return the band of a line in the viewport; Qt sets the text at the bottom of a fixed line height."""
        top = self.document().documentLayout().blockBoundingRect(block).top() - self.verticalScrollBar().value()
        return QRectF(0, top + TEXT_DROP, self.viewport().width(), LINE_HEIGHT)

    def line_at(self, y: float) -> int:
        """Return the 1-based line at viewport height ``y``, or 0."""
        block = self.cursorForPosition(QPointF(0, y).toPoint()).block()
        return block.blockNumber() + 1 if self.block_rect(block).contains(QPointF(0, y)) else 0

    def toggle_breakpoint(self, line: int) -> None:
        """Ask for a breakpoint on ``line`` to be set or removed."""
        if self.picture and line:
            self.breakpoint_toggled.emit(self.picture.path, line)

    def caret_line(self) -> int:
        """Return the 1-based line of the text cursor."""
        return self.textCursor().blockNumber() + 1

    def caret_run_line(self) -> int:
        """Return the line of the text cursor in the text that runs; of a new line the next one that was there."""
        path, line = self.picture.path if self.picture else "", self.caret_line()
        below = range(line, self.document().blockCount() + 1)
        return next((found for at in below if (found := self.run_line(path, at))), line)

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self.viewport()) as painter:
            theme = themes.active()
            painter.fillRect(self.viewport().rect(), theme.color("panel"))
            sketch = Sketch(painter, theme)
            if self.picture:
                self._draw_current(sketch, self.picture)
        super().paintEvent(event)
        with QPainter(self.viewport()) as painter:
            if self.picture:
                self._draw_over(Sketch(painter, theme), self.picture)

    def _draw_current(self, sketch: Sketch, shown: EditorPicture) -> None:
        block = self._block(shown.line)
        if shown.line and block.isValid():
            band = self.block_rect(block)
            sketch.painter.fillRect(band, sketch.theme.mix("now", 0.14))

    def _draw_over(self, sketch: Sketch, shown: EditorPicture) -> None:
        marks = shown.marks if shown.error is None else (shown.error[1],)
        for mark in marks:
            self._underline(sketch, mark, "now" if shown.error is None else "err")
        for line, note in shown.notes.items():
            self._draw_note(sketch, line, note)
        if shown.error:
            self._draw_error(sketch, *shown.error)

    def _underline(self, sketch: Sketch, mark: Mark, color: str) -> None:
        block = self._block(mark.line)
        if block.isValid():
            left, right = self._x(block, mark.start), self._x(block, mark.end)
            sketch.painter.fillRect(
                QRectF(left, self.block_rect(block).bottom() - 2, right - left, 2), sketch.color(color)
            )

    def _x(self, block: QTextBlock, column: int) -> float:
        """Return where a column lies in the viewport."""
        layout = block.layout()
        line = layout.lineForTextPosition(min(column, len(block.text())))
        if not line.isValid():
            return 0.0
        found: Any = line.cursorToX(min(column, len(block.text())))  # PySide returns (x, column)
        return float(found[0] if isinstance(found, tuple) else found) - self.horizontalScrollBar().value()

    def _draw_note(self, sketch: Sketch, line: int, note: Note) -> None:
        block = self._block(line)
        if not block.isValid():
            return
        rect = self.block_rect(block)
        x = self._x(block, len(block.text())) + 16
        room = self.viewport().width() - x - 16
        if room < 24:
            return
        if note.storage:
            sketch.box(QRectF(x, rect.top() + 9, 6, 6), sketch.theme.hue(note.storage), radius=1.5)
        sketch.text(
            x + (12 if note.storage else 0), rect.top() + 16, note.text, "faint", size=11.5, mono=True, room=room
        )

    def _draw_error(self, sketch: Sketch, message: str, mark: Mark) -> None:
        block = self._block(mark.line)
        if not block.isValid():
            return
        rect = self.block_rect(block)
        x = self._x(block, len(block.text())) + 14
        sketch.text(
            x, rect.top() + 16, message, "err", size=11.5, mono=True, room=max(60.0, self.viewport().width() - x - 6)
        )

    def _reveal(self, line: int) -> None:
        """Scroll so that ``line`` can be seen in the middle, unless it is in sight."""
        rect = self.block_rect(self._block(line))
        bar, height = self.verticalScrollBar(), self.viewport().height()
        if rect.top() < 0 or rect.bottom() > height:
            bar.setValue(math.floor(bar.value() + rect.top() - height / 2))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click on the text takes the keyboard."""
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click behind a line selects the tensor that its note names."""
        super().mouseReleaseEvent(event)
        line = self.line_at(event.position().y())
        note = self.picture.notes.get(self.run_line(self.picture.path, line)) if self.picture else None
        block = self.document().findBlockByNumber(line - 1)
        if note and note.tensor and line and event.position().x() > self._x(block, len(block.text())) + 8:
            self.picked.emit(Selection(tensor=note.tensor))

    def viewportEvent(self, event: QEvent) -> bool:
        """Say what the name under the resting mouse stands for at this moment."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            words = self.words_at(event.pos())
            QToolTip.showText(event.globalPos(), themes.code_html(words), self) if words else QToolTip.hideText()
            return True
        return super().viewportEvent(event)

    def words_at(self, place: QPoint) -> str:
        """Return what the name or path at a place of the viewport stands for, or ""."""
        cursor = self.cursorForPosition(place)
        return hover_words(self._moment, cursor.block().text(), cursor.positionInBlock()) if self._moment else ""

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._gutter.setGeometry(0, TOP, GUTTER, max(0, self.height() - TOP))
        if self.picture is not None and self.picture.line:
            rect = self.block_rect(self._block(self.picture.line))
            if rect.top() >= 0 and rect.bottom() <= event.oldSize().height():  # it was in sight, and stays there
                self._reveal(self.picture.line)


class _Gutter(QWidget):
    """Line numbers and breakpoints; a click sets or removes one."""

    def __init__(self, editor: Editor) -> None:
        super().__init__(editor)
        self._editor = editor
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(tr("click to set a breakpoint"))

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            sketch = Sketch(painter, themes.active())
            painter.fillRect(self.rect(), sketch.color("panel"))
            editor = self._editor
            block = editor.cursorForPosition(QPointF(0, 0).toPoint()).block()
            points = editor.breakpoints.get(editor.picture.path, set()) if editor.picture else set()
            while block.isValid() and editor.block_rect(block).top() < self.height():
                self._draw_line(sketch, block.blockNumber() + 1, editor.block_rect(block).top(), points)
                block = block.next()

    def _draw_line(self, sketch: Sketch, line: int, top: float, points: set[int]) -> None:
        picture = self._editor.picture
        current = picture is not None and line > 0 and picture.line == self._editor.run_line(picture.path, line)
        if current:
            sketch.painter.fillRect(QRectF(0, top, GUTTER, LINE_HEIGHT), sketch.theme.mix("now", 0.14))
            sketch.painter.fillRect(QRectF(0, top, 3, LINE_HEIGHT), sketch.color("now"))
        sketch.text(
            GUTTER - 12, top + 16.5, str(line), "dim" if current else "faint", size=13, mono=True, anchor="right"
        )
        if line in points:
            width = text_width(str(line), size=13, mono=True)
            sketch.box(QRectF(GUTTER - 12 - width - 17, top + 8, 8, 8), "err", radius=4)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._editor.toggle_breakpoint(self._editor.line_at(event.position().y()))


SPEC = PanelSpec(
    id="editor",
    title="Script",
    help="The script, its current line, and what each line gave",
    area="script",
    make=Editor,
)
