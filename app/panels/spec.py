"""What a panel says of itself, once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import SignalInstance
from PySide6.QtWidgets import QWidget

from stridescope.app.moment import Moment


class Panel(Protocol):
    """What the window asks of every panel widget; ``heading`` is (bold title, dim facts, facts at the right)."""

    def present(self, moment: Moment) -> None:
        """Show ``moment``."""

    def heading(self) -> tuple[str, str, str]:
        """Return what stands in the panel's header."""


@dataclasses.dataclass(frozen=True)
class PanelSpec:
    """One panel: its id, its title and help, the area where it lives and how its widget is made.

    ``area`` is one of "script", "state", "centre", "right", "timeline", "story", "output".
    """

    id: str
    title: str
    help: str
    area: str
    make: Callable[[], QWidget]


def signal(widget: QWidget, name: str) -> SignalInstance | None:
    """Return the widget's signal ``name`` where it has one."""
    found = getattr(widget, name, None)
    return found if isinstance(found, SignalInstance) else None
