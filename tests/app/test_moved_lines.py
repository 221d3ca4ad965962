"""Breakpoints stay on what their line says: through edits here, in another editor, and while the old text runs on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from debugger import CTRL, SHIFT, Key, caret, line_of, press, reach
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtGui import QTextCursor
from pytestqt.qtbot import QtBot

from stridescope.app import main
from stridescope.app.main_window import MainWindow
from stridescope.app.moved_lines import found_again, lines_before, shifted, surroundings
from stridescope.engine.worker.protocol import Breakpoint

TEXT = """import torch
a = torch.ones(3)
b = a * 2
a.add_(1)
a.add_(1)
print(b)
"""


@pytest.mark.parametrize(
    ("line", "first", "from_start", "by", "now"),
    [
        (3, 1, False, 2, 5), (3, 3, False, 1, 3), (3, 3, True, 1, 4), (3, 4, True, 5, 3),
        (5, 1, False, -2, 3), (3, 2, True, -1, 2), (3, 2, False, -1, 2), (2, 2, False, -1, 2), (9, 2, True, -3, 6),
    ],
)  # fmt: skip
def test_lines_move_with_an_edit(line: int, first: int, from_start: bool, by: int, now: int) -> None:
    assert shifted(line, first, from_start, by) == now


@given(
    lines=st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=12),
    new=st.lists(st.sampled_from(["x", "y"]), max_size=4),
    at=st.integers(0, 12),
)
def test_what_was_not_touched_is_found_again(lines: list[str], new: list[str], at: int) -> None:
    at = min(at, len(lines))
    edited = [*lines[:at], *new, *lines[at:]]
    assert lines_before(lines, edited) == [*range(1, at + 1), *[0] * len(new), *range(at + 1, len(lines) + 1)]
    assert all(found_again(lines, n, surroundings(lines, n)) == n for n in range(1, len(lines) + 1))


def test_of_equal_lines_the_one_in_the_same_surroundings_is_found() -> None:
    old = ["def f():", "    return 1", "", "def g():", "    return 1"]
    new = ["import os", "import sys", "", *old]
    assert [found_again(new, line, surroundings(old, line)) for line in (2, 5)] == [5, 8]
    assert found_again(["nothing", "like", "it"], 2, surroundings(old, 2)) == 2


def write(window: MainWindow, line: int, text: str) -> None:
    caret(window, line)
    window.workbench.panels["editor"].textCursor().insertText(text)


def test_points_move_as_one_types_and_the_old_text_runs_on(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run(TEXT)
    script, points = window.session.script, window.session.points
    points.toggle_line(script, 6)
    points.add(Breakpoint(kind="tensor", change="written", path=script, line=2, number=1, name="a"))
    write(window, 1, "# one\n# two\n")
    assert [point.line for point in points.all] == [8, 4]
    assert {point.line for point in points.enabled} == {6, 2}  # what runs is the text before
    press(qtbot, window, Key.Key_F5)
    assert line_of(window) == 4 and window.session.points.hits[points.all[1]] == 1
    press(qtbot, window, Key.Key_F5)
    press(qtbot, window, Key.Key_F5)
    assert line_of(window) == 6
    qtbot.keyClick(window, Key.Key_F5, CTRL | SHIFT)
    reach(qtbot, window)
    press(qtbot, window, Key.Key_F5)
    assert line_of(window) == 6  # the first of the writes, in its new place
    editor = window.workbench.panels["editor"]
    editor.undo()
    assert [point.line for point in points.all] == [8, 4]  # the new text was shown anew: there is nothing to undo


def test_a_deleted_line_takes_no_other_with_it(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run(TEXT)
    points = window.session.points
    points.toggle_line(window.session.script, 5)
    caret(window, 2)
    cursor = window.workbench.panels["editor"].textCursor()
    cursor.movePosition(QTextCursor.MoveOperation.Down, QTextCursor.MoveMode.KeepAnchor)
    cursor.removeSelectedText()
    assert [point.line for point in points.all] == [4]
    window.workbench.panels["editor"].undo()
    assert [point.line for point in points.all] == [5]


def test_points_are_found_again_after_an_edit_elsewhere(
    qtbot: QtBot, run: Callable[..., MainWindow], tmp_path: Path
) -> None:
    window = run(TEXT)
    script = window.session.script
    window.session.points.toggle_line(script, 4)
    window.session.points.add(Breakpoint(kind="tensor", change="written", path=script, line=2, number=1, name="a"))
    Path(script).write_text("# by another editor\n\n" + TEXT, encoding="utf-8")
    qtbot.keyClick(window, Key.Key_F5, CTRL | SHIFT)
    reach(qtbot, window)
    assert [point.line for point in window.session.points.all] == [6, 4]
    window.close()
    Path(script).write_text("# again\n\n\n" + TEXT, encoding="utf-8")
    other = main.make_window(remember=True)
    qtbot.addWidget(other)
    other.show()
    assert other.open(script)
    reach(qtbot, other)
    assert [point.line for point in other.session.points.all] == [7, 5]
    press(qtbot, other, Key.Key_F5)
    assert line_of(other) == 7
    other.close()
