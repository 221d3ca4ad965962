"""Small dialogs: find an action by its name, see all keys."""

from __future__ import annotations

import html

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QDialog, QLineEdit, QListWidget, QListWidgetItem, QTextBrowser, QVBoxLayout, QWidget

from stridescope.app import theme as themes
from stridescope.app.actions import ACTIONS, MENUS, title
from stridescope.app.text import tr
from stridescope.app.theme import ui_font


class Palette(QDialog):
    """Type a few letters, press Enter: every action by its name."""

    def __init__(self, parent: QWidget, actions: dict[str, QAction]) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAccessibleName(tr("All actions"))
        self._actions = actions
        self.needle = QLineEdit(placeholderText=tr("type to find an action"))
        self.found = QListWidget()
        self.found.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        for widget in (self.needle, self.found):
            widget.setFont(ui_font(13))
        layout = QVBoxLayout(self)
        layout.addWidget(self.needle)
        layout.addWidget(self.found)
        self.resize(520, 400)
        self.needle.textChanged.connect(self._search)
        self.needle.returnPressed.connect(self._choose)
        self.found.itemClicked.connect(lambda _item: self._choose())
        self.needle.installEventFilter(self)
        self._search("")

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Up and Down move in the list while letters go into the line."""
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()), 0)
            if step:
                self.found.setCurrentRow(max(0, min(self.found.count() - 1, self.found.currentRow() + step)))
                return True
        return False

    def _search(self, needle: str) -> None:
        self.found.clear()
        for row in ACTIONS:
            if self._actions[row.id].isEnabled() and needle.lower() in f"{title(row)} {tr(row.tip)}".lower():
                keys = QKeySequence(row.keys[0]).toString(QKeySequence.SequenceFormat.NativeText) if row.keys else ""
                item = QListWidgetItem(f"{title(row)}    {keys}")
                item.setToolTip(tr(row.tip))
                item.setData(Qt.ItemDataRole.UserRole, row.id)
                self.found.addItem(item)
        self.found.setCurrentRow(0)

    def _choose(self) -> None:
        item = self.found.currentItem()
        self.close()
        if item is not None:
            self._actions[item.data(Qt.ItemDataRole.UserRole)].trigger()


class Keys(QDialog):
    """All keys, by menu."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Keys"))
        self.resize(640, 620)
        page = QTextBrowser()
        page.setFrameStyle(0)
        page.setFont(ui_font(13))
        page.setHtml(themes.rich(keys_html()))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(page)


def keys_html() -> str:
    """Return a table of all actions and their keys."""
    theme, parts = themes.active(), []
    for menu in MENUS:
        name = f"<b style='color:{theme.now}'>{html.escape(tr(menu))}</b>"
        parts.append(f"<tr><td colspan=3 style='padding-top:12px'>{name}</td></tr>")
        for row in ACTIONS:
            if row.menu == menu and row.keys:
                keys = "&nbsp; ".join(
                    html.escape(QKeySequence(k).toString(QKeySequence.SequenceFormat.NativeText)) for k in row.keys
                )
                cells = (
                    f"<b>{keys}</b>",
                    html.escape(title(row).rstrip("…")),
                    f"<span style='color:{theme.dim}'>{html.escape(tr(row.tip))}</span>",
                )
                parts.append("<tr>" + "".join(f"<td style='padding:3px 14px'>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table>{''.join(parts)}</table>"
