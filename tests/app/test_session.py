"""The window with a real worker: start, step, break, pause, stop, restart, ask, and what goes wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSettings, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from stridescope.app import main
from stridescope.app.items.banner import MOST_LINES
from stridescope.app.main_window import MainWindow

Key, Modifier = Qt.Key, Qt.KeyboardModifier
PATIENCE = 30_000  # milliseconds

SCRIPT = """import torch
a = torch.arange(6.).reshape(2, 3)
b = a.t()
print("made", b.shape)
for i in range(3):
    b = b + 1
print("done")
"""


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[MainWindow]:
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path))
    main.make_application("dark", "en")
    made = main.make_window()
    qtbot.addWidget(made)
    made.show()
    yield made
    made.close()


@pytest.fixture
def run(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> Callable[[str], MainWindow]:
    """Open a script of the given text and wait until it stands at its first line."""

    def opened(text: str) -> MainWindow:
        script = tmp_path / "script.py"
        script.write_text(text, encoding="utf-8")
        assert window.open(str(script))
        reach(qtbot, window, "waiting")
        return window

    return opened


def reach(qtbot: QtBot, window: MainWindow, status: str) -> None:
    settled = status == "running"
    qtbot.waitUntil(lambda: window.session.status == status and (settled or window.settled), timeout=PATIENCE)


def editor_line(window: MainWindow) -> int:
    return int(window.workbench.panels["editor"].picture.line)


def test_it_waits_at_the_first_line(run: Callable[[str], MainWindow]) -> None:
    window = run(SCRIPT)
    assert editor_line(window) == 1
    assert window.toolbar.step.accessibleDescription().startswith("recording step")


def test_the_script_is_seen_before_the_worker_is_ready(window: MainWindow, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    window.open(str(tmp_path / "script.py"))
    assert window.workbench.panels["editor"].toPlainText() == SCRIPT
    assert window.session.status == "starting"


def test_step_and_step_back(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run(SCRIPT)
    window.stepping.set_grain("line")
    for line in (2, 3, 4):
        qtbot.keyClick(window, Key.Key_F10)
        reach(qtbot, window, "waiting")
        assert editor_line(window) == line
    head = window.time.head
    qtbot.keyClick(window, Key.Key_F10, Modifier.ShiftModifier)
    window.refresh()
    assert (editor_line(window), window.time.head) == (3, head)
    qtbot.keyClick(window, Key.Key_F10)
    window.refresh()
    assert (editor_line(window), window.time.head) == (4, head)


def test_steps_are_ops(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run(SCRIPT)
    seen = []
    for _ in range(3):
        qtbot.keyClick(window, Key.Key_F10)
        reach(qtbot, window, "waiting")
        recording = window.session.recording
        assert recording is not None
        state = recording.state(window.time.view)
        seen.append(state.op.op.rpartition("::")[2] if state.op else "")
    assert seen[0] == "arange" and "t" in seen


CALLS = """import torch


def twice(t):
    return t * 2


w = torch.ones(2, requires_grad=True)
y = twice(w).sum()
y.backward()
print("end")
"""


def test_a_replayed_step_ends_where_the_live_one_did(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run(CALLS)
    stops = [window.time.view]
    plan = [("line", "over")] * 3 + [("line", "into"), ("op", "over"), ("op", "into"), ("op", "out"), ("line", "out")]
    plan += [("op", "over")] * 4 + [("event", "over")] * 3 + [("op", "out"), ("line", "over")]
    for grain, mode in plan:
        window.stepping.set_grain(grain)
        window.stepping.forward(mode)
        qtbot.waitUntil(lambda: window.session.status != "running", timeout=PATIENCE)
        if window.session.status == "ended":
            break
        stops.append(window.time.head)
    assert len(stops) > 10
    for (grain, mode), before, after in zip(plan, stops, stops[1:], strict=False):
        window.time.look(before)
        window.stepping.set_grain(grain)
        window.stepping.forward(mode)
        assert window.time.view == after, (grain, mode, before)


def test_run_to_the_end_prints(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run(SCRIPT)
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "ended")
    assert window.workbench.panels["output"].view.toPlainText() == "made torch.Size([3, 2])\ndone\n"
    qtbot.keyClick(window, Key.Key_Home)
    window.refresh()
    assert window.workbench.panels["output"].view.toPlainText() == ""


def test_breakpoint_run_to_and_restart(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run(SCRIPT)
    editor = window.workbench.panels["editor"]
    editor.toggle_breakpoint(6)
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "waiting")
    assert editor_line(window) == 6
    editor.toggle_breakpoint(6)
    cursor = editor.textCursor()
    cursor.setPosition(editor.document().findBlockByNumber(7 - 1).position())
    editor.setTextCursor(cursor)
    qtbot.keyClick(window, Key.Key_F10, Modifier.ControlModifier)
    reach(qtbot, window, "waiting")
    assert editor_line(window) == 7
    qtbot.keyClick(window, Key.Key_F5, Modifier.ControlModifier | Modifier.ShiftModifier)
    reach(qtbot, window, "waiting")
    assert editor_line(window) == 1


def test_pause_and_stop_an_endless_loop(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run("n = 0\nwhile True:\n    n += 1\n")
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "running")
    qtbot.keyClick(window, Key.Key_F6)
    reach(qtbot, window, "waiting")
    assert editor_line(window) in (2, 3)
    qtbot.keyClick(window, Key.Key_F5)
    qtbot.keyClick(window, Key.Key_F5, Modifier.ShiftModifier)
    reach(qtbot, window, "ended")
    assert window.session.recording is not None and window.workbench.isVisible()


def test_the_console_answers(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run("x = 20\ny = 1\n")
    window.stepping.set_grain("line")
    qtbot.keyClick(window, Key.Key_F10)
    reach(qtbot, window, "waiting")
    console = window.workbench.panels["console"]
    console.line.setText("x + 22")
    with qtbot.waitSignal(window.session.answered, timeout=PATIENCE):
        qtbot.keyClick(console.line, Key.Key_Return)
    assert console.view.toPlainText() == ">>> x + 22\n42"
    console.line.setText("print('seen', x); x")
    with qtbot.waitSignal(window.session.answered, timeout=PATIENCE):
        qtbot.keyClick(console.line, Key.Key_Return)
    assert console.view.toPlainText().splitlines()[-2:] == ["seen 20", "20"]
    output = window.workbench.panels["output"].view
    qtbot.waitUntil(lambda: output.toPlainText() == "seen 20\n", timeout=PATIENCE)


def test_a_click_on_the_console_and_one_types(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run("x = 20\n")
    window.workbench.show_panel("console")
    console = window.workbench.panels["console"]
    qtbot.mouseClick(console.view.viewport(), Qt.MouseButton.LeftButton)
    assert window.focusWidget() is console.line
    qtbot.keyClicks(window.focusWidget(), "1 + 1")
    with qtbot.waitSignal(window.session.answered, timeout=PATIENCE):
        qtbot.keyClick(window.focusWidget(), Key.Key_Return)
    console.view.selectAll()
    qtbot.keyClick(console.line, Key.Key_C, Modifier.ControlModifier)
    assert QApplication.clipboard().text() == ">>> 1 + 1\n2"


def test_a_run_from_the_past_says_where_the_script_waits(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run("x = 20\ny = 1\nz = 2\n")
    window.stepping.set_grain("line")
    qtbot.keyClick(window, Key.Key_F10)
    reach(qtbot, window, "waiting")
    head = window.time.head
    qtbot.keyClick(window, Key.Key_Home)
    qtbot.keyClick(window, Key.Key_F5)
    assert window.time.view == head and "run again" in window.banner.words
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "ended")


def test_a_click_on_the_gutter_leaves_the_keyboard_where_it_was(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run("x = 20\ny = 1\n")
    editor, timeline = window.workbench.panels["editor"], window.workbench.panels["timeline"]
    timeline.setFocus()
    gutter = editor.childAt(10, 20)
    qtbot.mouseClick(gutter, Qt.MouseButton.LeftButton, pos=QPoint(10, 36))
    assert window.session.breakpoints == {window.session.script: {2}}
    assert window.focusWidget() is timeline
    qtbot.mouseClick(editor.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(10, 36))
    assert window.focusWidget() is editor


def test_standard_input(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run("name = input('who? ')\nprint('hello', name)\n")
    output = window.workbench.panels["output"]
    with qtbot.waitSignal(window.session.input_wanted, timeout=PATIENCE):
        qtbot.keyClick(window, Key.Key_F5)
    assert not output.input.isHidden()
    output.input.setText("Ada")
    qtbot.keyClick(output.input, Key.Key_Return)
    reach(qtbot, window, "ended")
    assert output.view.toPlainText().endswith("hello Ada\n")


def test_a_failing_script_shows_where(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run("x = 1\nraise ValueError('no good')\n")
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "waiting")  # it stands where it failed
    shown = window.workbench.panels["editor"].picture
    assert shown.error is not None and shown.error[0] == "ValueError: no good" and shown.error[1].line == 2
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "ended")
    assert "ValueError: no good" in window.workbench.panels["output"].view.toPlainText()


def test_a_broken_script_shows_its_error(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import torch\nx = = 3\n")
    assert window.open(str(script))
    reach(qtbot, window, "waiting")  # it stands at the error, as any failing script does
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "ended")
    assert window.workbench.panels["editor"].toPlainText() == "import torch\nx = = 3\n"
    assert "SyntaxError" in window.workbench.panels["output"].view.toPlainText()
    assert "SyntaxError" in window.banner.words


def test_a_dying_worker_costs_nothing(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run("import os\nx = 1\nos.kill(os.getpid(), 9)\n")
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "ended")
    assert "The worker died" in window.banner.words
    qtbot.keyClick(window, Key.Key_Home)
    window.refresh()
    assert window.workbench.panels["timeline"].picture.steps >= 3


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the last hundredths of a second are lost")
def test_a_crash_stands_on_its_line(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run("import ctypes\nx = 1\nprint('before')\nctypes.string_at(0)\n")
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "ended")
    died, what, *calls = window.banner.words.splitlines()
    assert "The worker died" in died and what == "Segmentation fault" and 'script.py", line 4' in calls[-1]
    assert window.workbench.panels["editor"].picture.line == 4
    assert window.workbench.panels["output"].view.toPlainText() == "before\n"


def test_a_long_message_leaves_the_panels_their_room(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run("raise ValueError('\\n'.join(f'row {n}' for n in range(300)))\n")
    height = window.height()
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "waiting")
    qtbot.waitUntil(lambda: "row 3" in window.banner.words, timeout=PATIENCE)
    assert window.banner.words.endswith(" …") and len(window.banner.words.splitlines()) == MOST_LINES
    assert window.banner.height() < 200 and window.height() == height
    assert "row 299" in window.workbench.panels["output"].view.toPlainText()


def test_an_edit_is_saved_and_run(qtbot: QtBot, run: Callable[[str], MainWindow]) -> None:
    window = run("print('one')\n")
    editor = window.workbench.panels["editor"]
    qtbot.waitUntil(lambda: not editor.isReadOnly())
    editor.selectAll()
    editor.insertPlainText("print('two')\n")
    assert editor.heading()[1].endswith("restart to run it")
    window.editing.restart()
    assert "was saved to" in window.banner.words
    reach(qtbot, window, "waiting")
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "ended")
    assert window.workbench.panels["output"].view.toPlainText() == "two\n"


def test_the_recording_can_be_kept(qtbot: QtBot, run: Callable[[str], MainWindow], tmp_path: Path) -> None:
    window = run("print('kept')\n")
    qtbot.keyClick(window, Key.Key_F5)
    reach(qtbot, window, "ended")
    kept = tmp_path / "kept.stride"
    window.session.save_as(str(kept))
    assert window.open(str(kept))
    reach(qtbot, window, "replay")
    window.time.look(window.time.head)
    window.refresh()
    assert window.workbench.panels["output"].view.toPlainText() == "kept\n"
