"""Colours and fonts, dark, light and of high contrast: the only place that knows a colour's value.

Panels paint with tokens (``theme.now``, ``theme.hue(storage)``). The hues of storages are those of Okabe and Ito, which
colour-blind people can tell apart; hatching says again what a colour says.
"""

from __future__ import annotations

import dataclasses
import functools
import html
import importlib.resources

from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontDatabase, QGuiApplication, QPainter, QPalette, QPen, QPixmap

# Okabe and Ito's set in the order of the mock-up; black is left out and grey added.
HUES = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#7f8cff", "#c9b71f", "#2aa7b8")


@dataclasses.dataclass(frozen=True)
class Theme:
    """One set of colour tokens. ``now`` is the single accent: the current moment, wherever it shows."""

    name: str
    bg: str
    panel: str
    panel2: str
    line: str
    text: str
    dim: str
    faint: str
    now: str
    on_now: str
    fwd: str
    bwd: str
    ok: str
    err: str
    free: str
    keyword: str
    number: str
    string: str

    def color(self, token: str) -> QColor:
        """Return the colour of a token (``"now"``) or of a literal (``"#ffc247"``)."""
        return QColor(token if token.startswith("#") else getattr(self, token))

    def hue(self, storage: int) -> QColor:
        """Return the one hue that ``storage`` has everywhere."""
        return QColor(HUES[(storage - 1) % len(HUES)]) if storage else self.color("dim")

    def mix(self, color: QColor | str, share: float, over: str = "panel") -> QColor:
        """Return ``share`` of ``color`` laid over a token."""
        top = self.color(color) if isinstance(color, str) else color
        base = self.color(over)
        pairs = ((top.red(), base.red()), (top.green(), base.green()), (top.blue(), base.blue()))
        return QColor(*(round(share * a + (1 - share) * b) for a, b in pairs))


DARK = Theme(
    name="dark", bg="#12151a", panel="#191d24", panel2="#1f242d", line="#2b323d", text="#e7eaf0", dim="#8d97a7",
    faint="#667184", now="#ffc247", on_now="#1c1400", fwd="#5aa9ff", bwd="#ff8a4c", ok="#4cc38a", err="#ff5c7a",
    free="#262c36", keyword="#c792ea", number="#f78c6c", string="#9ece8a",
)  # fmt: skip
LIGHT = Theme(
    name="light", bg="#f4f5f7", panel="#ffffff", panel2="#f7f8fa", line="#dde1e7", text="#1a1f27", dim="#5c6675",
    faint="#8a93a1", now="#b97700", on_now="#1c1400", fwd="#1769c7", bwd="#c4500f", ok="#18794e", err="#c2183e",
    free="#e9ecf0", keyword="#8431b5", number="#a8440b", string="#2f7a3b",
)  # fmt: skip
CONTRAST = Theme(
    name="contrast", bg="#000000", panel="#000000", panel2="#101010", line="#7a7a7a", text="#ffffff", dim="#e0e0e0",
    faint="#bdbdbd", now="#ffe14d", on_now="#000000", fwd="#7cc0ff", bwd="#ffa36b", ok="#6dff9f", err="#ff8098",
    free="#1c1c1c", keyword="#e0b0ff", number="#ffb59a", string="#b8f5a2",
)  # fmt: skip
THEMES = {theme.name: theme for theme in (DARK, LIGHT, CONTRAST)}


def system_theme() -> Theme:
    """Return the theme that follows the system; an unknown scheme counts as dark, the look of the mock-up."""
    scheme = QGuiApplication.styleHints().colorScheme()
    return LIGHT if scheme is Qt.ColorScheme.Light else DARK


def palette(theme: Theme) -> QPalette:
    """Return the palette with which Fusion draws the parts that we do not paint."""
    role = QPalette.ColorRole
    tokens = {
        "panel": (role.Window, role.Base),
        "panel2": (role.AlternateBase, role.Button, role.ToolTipBase),
        "line": (role.Mid, role.Light, role.Midlight),
        "bg": (role.Dark, role.Shadow),
        "text": (role.WindowText, role.Text, role.ButtonText, role.ToolTipText),
        "fwd": (role.Link,),
        "faint": (role.PlaceholderText,),
        "now": (role.Highlight, role.Accent),
        "on_now": (role.HighlightedText,),
    }
    result = QPalette()
    for token, roles in tokens.items():
        for each in roles:
            result.setColor(each, theme.color(token))
    for each in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, each, theme.color("faint"))
    return result


@functools.cache
def load_fonts() -> None:
    """Register the bundled fonts with Qt; a font that is missing falls back to the system's."""
    for entry in (importlib.resources.files("stridescope.resources") / "fonts").iterdir():
        if entry.name.endswith((".otf", ".ttf")):
            QFontDatabase.addApplicationFontFromData(entry.read_bytes())


@functools.cache
def ui_font(size: float = 12, *, bold: bool = False) -> QFont:
    """Return the font of words, ``size`` in pixels."""
    return _font(["Inter", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "sans-serif"], size, bold)


@functools.cache
def mono_font(size: float = 12, *, bold: bool = False) -> QFont:
    """Return the font of code and numbers, ``size`` in pixels."""
    return _font(["JetBrains Mono", "DejaVu Sans Mono", "Noto Sans Mono CJK SC", "monospace"], size, bold)


def rich(text: str) -> str:
    """Return HTML for Qt, its bold as heavy as :func:`ui_font`'s: of a weight our files lack, Qt draws a smear."""
    return f"<style>b {{ font-weight: {QFont.Weight.DemiBold.value} }}</style>{text}"


def words_html(text: str) -> str:
    """Return HTML for Qt that shows text as it is: of a name such as ``table['<b>']`` Qt would make bold."""
    return f'<div style="white-space: pre">{html.escape(text)}</div>' if text else ""


def code_html(text: str) -> str:
    """Return HTML for Qt that shows text as code: its columns stay one under the other."""
    families = ", ".join(f"'{family}'" for family in mono_font().families())
    return f'<pre style="font-family: {families}; margin: 0">{html.escape(text)}</pre>'


def _font(families: list[str], size: float, bold: bool) -> QFont:
    font = QFont(families)
    font.setPixelSize(round(size))
    font.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
    font.setFeature(QFont.Tag("calt"), 0)  # no ligatures: "!=" must stay two columns in the editor
    return font


def pen(color: QColor, width: float = 1, *, dashed: bool = False) -> QPen:
    """Return a cosmetic-looking pen; dashes say pending or absent."""
    result = QPen(color, width)
    if dashed:
        result.setDashPattern([4 / width, 3 / width])
    result.setCapStyle(Qt.PenCapStyle.FlatCap)
    return result


def hatch(color: QColor) -> QBrush:
    """Return diagonal stripes: the second sign for aliased, pending and freed."""
    return _hatch(color.rgba())


@functools.cache
def _hatch(rgba: int) -> QBrush:
    color = QColor.fromRgba(rgba)
    tile = QPixmap(8, 8)
    tile.fill(Qt.GlobalColor.transparent)
    with QPainter(tile) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(color, 2.2))
        for shift in (-8, 0, 8):
            painter.drawLine(shift - 1, 9, shift + 9, -1)
    return QBrush(tile)


_active: list[Theme] = [DARK]


def active() -> Theme:
    """Return the theme that everything is painted with."""
    return _active[0]


def activate(theme: Theme) -> None:
    """Paint everything with ``theme`` from now on."""
    _active[0] = theme
    QGuiApplication.setPalette(palette(theme))


def stylesheet() -> str:
    """Return the few rules that a palette cannot say: slim scroll bars, tool tips, menus, dialogs and line edits."""
    t = _active[0]
    return f"""
    QScrollBar {{ background: transparent; border: none; margin: 0; }}
    QScrollBar:vertical {{ width: 10px; }} QScrollBar:horizontal {{ height: 10px; }}
    QScrollBar::handle {{ background: {t.line}; border-radius: 3px; margin: 2px; min-height: 24px; min-width: 24px; }}
    QScrollBar::handle:hover {{ background: {t.faint}; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    QAbstractScrollArea::corner {{ background: {t.panel}; }}
    QListWidget {{ border: none; outline: none; background: {t.panel}; }}
    QListWidget::item {{ padding: 5px 8px; border-radius: 4px; }}
    QListWidget::item:selected {{ background: {t.line}; color: {t.text}; }}
    QToolTip {{ background: {t.panel2}; color: {t.text}; border: 1px solid {t.line}; padding: 5px; }}
    QMenu {{ background: {t.panel2}; color: {t.text}; border: 1px solid {t.line}; padding: 5px; }}
    QMenu::item {{ padding: 5px 22px; border-radius: 4px; }}
    QMenu::item:selected {{ background: {t.line}; }}
    QMenu::item:disabled {{ color: {t.faint}; }}
    QDialog {{ border: 1px solid {t.line}; }}
    QDialogButtonBox {{ dialogbuttonbox-buttons-have-icons: 0; }}
    QDialog QPushButton {{ background: {t.panel2}; border: 1px solid {t.line}; border-radius: 5px;
        padding: 5px 16px; min-width: 52px; color: {t.text}; }}
    QDialog QPushButton:hover {{ background: {t.line}; }}
    QDialog QPushButton:default {{ background: {t.now}; border-color: {t.now}; color: {t.on_now}; }}
    QDialog QPushButton:disabled {{ color: {t.faint}; }}
    QLineEdit {{ background: transparent; border: none; padding: 3px 8px; color: {t.text}; }}
    QLineEdit:focus {{ border-bottom: 1px solid {t.now}; }}
    QTableView {{ selection-background-color: {t.line}; selection-color: {t.text}; background: {t.panel}; }}
    """
