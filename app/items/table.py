"""A quiet table: rows of words with a swatch of hue, keyboard and screen reader included."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any, overload

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QImage, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyledItemDelegate, QStyleOptionViewItem, QTableView

from stridescope.app import theme as themes
from stridescope.app.items.sketch import Sketch, text_width
from stridescope.app.theme import ui_font

Index = QModelIndex | QPersistentModelIndex
ROW_HEIGHT, INDENT = 27, 14
SELECT_ROW = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
SIGNS = {None: "", True: "▾ ", False: "▸ "}
PICTURE = (16, 6)  # cells of a row's small picture, across and down


@dataclasses.dataclass(frozen=True)
class TableRow:
    """What one row shows: its words, perhaps quiet, and the storage whose hue it wears (0: none; hatched: shared)."""

    key: int
    cells: tuple[str, ...]
    storage: int = 0
    quiet: bool = False
    hatched: bool = False
    indent: int = 0
    picture: bytes = b""  # grey bytes, PICTURE wide and high, drawn in the second column
    opened: bool | None = None  # None where there is nothing to open

    @property
    def title(self) -> bool:
        """Whether its first words have the whole row."""
        return not any(self.cells[1:]) and not self.picture


class RowsByKey(Sequence[TableRow]):
    """Rows that are made when they are first looked at: a hundred thousand of them cost what is seen of them."""

    def __init__(self, keys: Sequence[int], make: Callable[[int], TableRow]) -> None:
        self.keys, self._make = keys, make
        self._made: dict[int, TableRow] = {}

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, place: int) -> TableRow: ...
    @overload
    def __getitem__(self, place: slice) -> list[TableRow]: ...
    def __getitem__(self, place: int | slice) -> TableRow | list[TableRow]:
        if isinstance(place, slice):
            return list(map(self._row, self.keys[place]))
        return self._row(self.keys[place])

    def _row(self, key: int) -> TableRow:
        if key not in self._made:
            self._made[key] = self._make(key)
        return self._made[key]


def place_of(rows: Sequence[TableRow], keys: Collection[int]) -> int:
    """Return the place of the first row with one of these keys, -1 where there is none."""
    listed = rows.keys if isinstance(rows, RowsByKey) else [row.key for row in rows]
    return next((place for place, key in enumerate(listed) if key in keys), -1)


class Rows(QAbstractTableModel):
    """Rows as Qt reads them; replaced as a whole."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        super().__init__()
        self.columns = columns
        self.tip: Callable[[int], str] | None = None  # what a row says when the mouse rests on it, by its key
        self.rows: Sequence[TableRow] = []

    def replace(self, rows: Sequence[TableRow]) -> None:
        """Show other rows, keeping what did not change."""
        if rows == self.rows or not (rows or self.rows):
            return
        same = len(rows) == len(self.rows)
        if not same:
            self.beginResetModel()
        self.rows = rows
        if same:
            self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(self.columns) - 1))
        else:
            self.endResetModel()

    def rowCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008 (Qt's own signature)
        return len(self.rows)

    def columnCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return row.cells[index.column()]
        return themes.words_html(self.tip(row.key)) if role == Qt.ItemDataRole.ToolTipRole and self.tip else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self.columns[section]
        return None


class Table(QTableView):
    """``row_picked`` and ``row_pointed`` give the key of a row (0: none), ``row_turned`` that of one to open or close.

    A row that can be opened is turned by a click, and by Right and Left, which the window then leaves to the table.
    """

    row_picked = Signal(int)
    row_pointed = Signal(int)
    row_turned = Signal(int)

    def __init__(self, columns: tuple[str, ...], name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.rows = Rows(columns)
        self.setModel(self.rows)
        self.marked: frozenset[int] = frozenset()
        self.own_keys: frozenset[Qt.Key] = frozenset()  # not the window's while the table has the focus
        self.setItemDelegate(_Cell(self))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setFrameStyle(0)
        self.setShowGrid(False)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self._style_headers()
        self.activated.connect(self._pick)
        self.entered.connect(lambda index: self.row_pointed.emit(self.rows.rows[index.row()].key))

    def _style_headers(self) -> None:
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        header = self.horizontalHeader()
        header.setFont(ui_font(11))
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setStretchLastSection(True)
        header.setMinimumSectionSize(24)
        self.restyle()

    def restyle(self) -> None:
        """Take the colours of the active theme."""
        theme = themes.active()
        self.horizontalHeader().setStyleSheet(
            f"QHeaderView {{ background: {theme.panel}; }}"
            f"QHeaderView::section {{ background: {theme.panel}; color: {theme.faint}; border: none;"
            f" border-bottom: 1px solid {theme.line}; padding: 5px 8px; font-size: 11px; }}"
        )

    def show_rows(self, rows: Sequence[TableRow], marked: frozenset[int] = frozenset()) -> None:
        """Show ``rows``; those whose key is in ``marked`` are the selection that all panels share."""
        at = self.currentIndex().row()
        current = {self.rows.rows[at].key} if 0 <= at < len(self.rows.rows) else set()
        self.rows.replace(rows)
        if current and not self.currentIndex().isValid() and (place := place_of(rows, current)) >= 0:
            self.selectionModel().setCurrentIndex(self.rows.index(place, 0), SELECT_ROW)
        if marked != self.marked:
            self.marked = marked
            if (first := place_of(rows, marked)) >= 0:
                self.scrollTo(self.rows.index(first, 0))
        self.viewport().update()

    def fit_columns(self, minimum: tuple[int, ...]) -> None:
        """Make each column as wide as its widest word, at least ``minimum``."""
        letter, rows = text_width("0", mono=True), [row for row in self.rows.rows[:200] if not row.title]
        for column, width in enumerate(minimum):
            words = max(
                (letter * len(row.cells[column]) + INDENT * row.indent * (not column) for row in rows), default=0
            )
            needed = round(words) + 17 + (15 if column == 0 else 0) if column + 1 < len(minimum) else 0
            self.setColumnWidth(column, min(260, max(width, needed)))

    def _pick(self, index: Index) -> None:
        row = self.rows.rows[index.row()]
        (self.row_picked if row.opened is None else self.row_turned).emit(row.key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Right opens a row, Left closes it."""
        at = self.currentIndex().row()
        row = self.rows.rows[at] if 0 <= at < len(self.rows.rows) else None
        wanted = {Qt.Key.Key_Right: False, Qt.Key.Key_Left: True}.get(Qt.Key(event.key()))
        if row is not None and wanted is not None and row.opened is wanted:
            self.row_turned.emit(row.key)
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Keep the table's own keys from the window's actions."""
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.ShortcutOverride and self._owns(event):
            event.accept()
            return True
        return super().event(event)

    def _owns(self, event: QKeyEvent) -> bool:
        return event.modifiers() == Qt.KeyboardModifier.NoModifier and Qt.Key(event.key()) in self.own_keys

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        index = self.indexAt(event.position().toPoint())
        if index.isValid():
            self._pick(index)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.row_pointed.emit(0)


class _Cell(QStyledItemDelegate):
    """Draws one cell: the swatch in the first column, hatching nowhere, a hairline under the row."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._table = table

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        rect: QRect = option.rect
        row = self._table.rows.rows[index.row()]
        painter.save()
        sketch = Sketch(painter, themes.active())
        hue = sketch.theme.hue(row.storage)
        if row.key in self._table.marked:
            painter.fillRect(rect, sketch.theme.mix(hue, 0.14))
        if self._table.hasFocus() and index.row() == self._table.currentIndex().row():
            painter.fillRect(QRect(rect.left(), rect.bottom() - 1, rect.width(), 1), sketch.color("now"))
        painter.fillRect(QRect(rect.left(), rect.bottom(), rect.width(), 1), sketch.theme.mix("line", 0.5))
        if row.picture and index.column() == 1:
            self._draw_picture(sketch, rect, row)
        else:
            self._words(sketch, rect, row, index.column())
        painter.restore()

    def _draw_picture(self, sketch: Sketch, rect: QRect, row: TableRow) -> None:
        width, height = PICTURE
        image = QImage(row.picture, width, height, width, QImage.Format.Format_Indexed8)
        hue = sketch.theme.hue(row.storage)
        image.setColorTable([sketch.theme.mix(hue, share / 255).rgb() for share in range(256)])
        frame = QRectF(rect.left() + 6, rect.center().y() - 8, 44, 17)
        sketch.painter.drawImage(frame, image)

    def _words(self, sketch: Sketch, rect: QRect, row: TableRow, column: int) -> None:
        x = rect.left() + 8.0 + (row.indent * INDENT if column == 0 else 0)
        if column == 0 and row.storage:
            swatch = QRectF(x, rect.center().y() - 4, 9, 9)
            sketch.box(swatch, sketch.theme.hue(row.storage), radius=2)
            if row.hatched:
                sketch.box(swatch, themes.hatch(sketch.color("panel")), radius=2)
            x += 15
        color = "dim" if row.quiet else "text"
        right = self._table.viewport().width() if row.title else rect.right()
        words = SIGNS[row.opened] + row.cells[column] if column == 0 else row.cells[column]
        keep = "end" if column == 0 and row.storage and "." in words else "start"  # of a path in a module
        sketch.text(x, rect.center().y() + 5, words, color, mono=True, room=max(8.0, right - x - 2), keep=keep)

    def sizeHint(self, _option: QStyleOptionViewItem, index: Index) -> QSize:
        words = self._table.rows.rows[index.row()].cells[index.column()]
        return QSize(round(text_width(words, mono=True)) + 22, ROW_HEIGHT)
