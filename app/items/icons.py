"""Icons: our own SVG drawings in ``resources/icons``, painted in any colour."""

from __future__ import annotations

import functools
import importlib.resources

from PySide6.QtCore import QByteArray, QRectF
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer


@functools.cache
def _drawing(name: str) -> str:
    folder = importlib.resources.files("stridescope.resources") / "icons"
    return (folder / f"{name}.svg").read_text(encoding="utf-8")


@functools.cache
def _renderer(name: str, color: str) -> QSvgRenderer:
    return QSvgRenderer(QByteArray(_drawing(name).replace("currentColor", color).encode()))


def draw_icon(painter: QPainter, name: str, rect: QRectF, color: QColor) -> None:
    """Paint an icon."""
    _renderer(name, color.name()).render(painter, rect)


def icon(name: str, color: QColor, size: int = 32) -> QIcon:
    """Return an icon for menus."""
    pixmap = QPixmap(size, size)
    pixmap.fill(QColor(0, 0, 0, 0))
    with QPainter(pixmap) as painter:
        draw_icon(painter, name, QRectF(0, 0, size, size), color)
    return QIcon(pixmap)
