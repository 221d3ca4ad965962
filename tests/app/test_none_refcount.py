"""PySide6 must not lose references to None: 6.12.0 does, and under Python 3.11 that aborts the process."""

from __future__ import annotations

import sys

import pytest
from PySide6.QtWidgets import QWidget

CALLS = 2000


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal from Python 3.12 on")
def test_none_keeps_its_references(qtbot: object) -> None:
    widget = QWidget()
    before = sys.getrefcount(None)
    for _ in range(CALLS):
        widget.update()
        widget.setEnabled(True)
    assert abs(sys.getrefcount(None) - before) < CALLS / 10
