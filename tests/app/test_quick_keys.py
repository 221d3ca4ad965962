"""Keys pressed faster than the script steps: none is lost, a held one does not run on, Pause and Stop end them all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from debugger import ALT, CTRL, NONE, PATIENCE, SHIFT, Key, line_of, press, reach, run_to
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from stridescope.app import replay
from stridescope.app.main_window import MainWindow

GRAINS = {"line": Key.Key_1, "op": Key.Key_2, "event": Key.Key_3}
MODES = {"over": (Key.Key_F10, NONE), "into": (Key.Key_F11, NONE)}
BACK = {"over": (Key.Key_F10, SHIFT), "into": (Key.Key_F11, CTRL)}
PRESSES = 20
SLEEPS = "import time\nfor n in range(100):\n    print(n)\ntime.sleep(1e6)\nprint('never')\n"


def quickly(qtbot: QtBot, window: MainWindow, keys: list[tuple[Qt.Key, Qt.KeyboardModifier]]) -> int:
    """Press keys without waiting for anything in between; return where we look when all is done."""
    for key, modifier in keys:
        qtbot.keyClick(window, key, modifier)
    qtbot.waitUntil(lambda: not window.stepping.runs and not window.stepping.owed, timeout=PATIENCE)
    reach(qtbot, window)
    return window.time.view


def stops(window: MainWindow, step: int, grain: str, mode: str, times: int) -> int:
    """Go on that often in the recording."""
    assert window.session.recording is not None
    for _ in range(times):
        found = replay.next_stop(window.session.recording, step, grain, mode)
        assert found is not None
        step = found
    return step


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("grain", GRAINS)
def test_each_press_is_a_step(qtbot: QtBot, run: Callable[..., MainWindow], grain: str, mode: str) -> None:
    window = run()
    run_to(qtbot, window, 13)
    press(qtbot, window, GRAINS[grain], ALT)
    start, taken = window.time.view, "into" if grain == "event" else mode
    there = quickly(qtbot, window, [MODES[mode]] * PRESSES)
    assert there == window.time.head == stops(window, start, grain, taken, PRESSES)
    assert quickly(qtbot, window, [BACK[mode]] * PRESSES) <= start
    window.stepping.look(start)
    assert quickly(qtbot, window, [MODES[mode]] * PRESSES) == there


def test_presses_forwards_and_backwards_keep_their_order(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run()
    run_to(qtbot, window, 13)
    press(qtbot, window, Key.Key_1, ALT)
    start = window.time.view
    there = quickly(qtbot, window, [*[MODES["into"]] * 6, *[BACK["into"]] * 4, *[MODES["into"]] * 3])
    assert there == stops(window, start, "line", "into", 5)
    assert window.time.head == stops(window, start, "line", "into", 6)


def test_a_run_waits_for_the_steps_before_it(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run("for n in range(30):\n    print(n)\nprint('end')\n")
    for key in (Key.Key_F10, Key.Key_F10, Key.Key_F5):
        qtbot.keyClick(window, key)
    reach(qtbot, window, "ended")


def test_pause_answers_and_forgets_the_steps_that_wait(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run(SLEEPS)
    run_to(qtbot, window, 4)
    for _ in range(PRESSES):
        qtbot.keyClick(window, Key.Key_F10)
    assert window.stepping.owed
    press(qtbot, window, Key.Key_F6)
    assert (window.session.status, window.stepping.owed, line_of(window)) == ("waiting", 0, 4)


def test_stop_answers_while_steps_wait(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run(SLEEPS)
    run_to(qtbot, window, 4)
    for _ in range(PRESSES):
        qtbot.keyClick(window, Key.Key_F10)
    qtbot.keyClick(window, Key.Key_F5, SHIFT)
    reach(qtbot, window, "ended")
    assert not window.stepping.owed


def test_one_can_look_back_while_a_step_takes_its_time(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run(SLEEPS)
    here = run_to(qtbot, window, 4)
    qtbot.keyClick(window, Key.Key_F10)
    qtbot.keyClick(window, Key.Key_F10, SHIFT)
    qtbot.waitUntil(lambda: window.time.view < here, timeout=PATIENCE)
    assert window.session.status == "running"


def test_a_breakpoint_ends_the_steps_that_wait(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run("def inner():\n    return 1\nfor n in range(30):\n    inner()\nprint('end')\n")
    window.session.points.toggle_line(window.session.script, 2)
    press(qtbot, window, Key.Key_1, ALT)
    quickly(qtbot, window, [MODES["over"]] * PRESSES)
    assert line_of(window) == 2


def test_a_key_that_is_held_stops_with_its_release(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run("for n in range(1000):\n    print(n)\nprint('end')\n")
    press(qtbot, window, Key.Key_1, ALT)
    start = window.time.head
    for _ in range(200):
        held = QKeyEvent(QEvent.Type.ShortcutOverride, Key.Key_F10, NONE, "", True)
        QApplication.sendEvent(window, held)
        window.actions_by_id["step"].trigger()
    assert window.stepping.owed == 0
    quickly(qtbot, window, [])
    assert start < window.time.head < stops(window, start, "line", "over", 1) + 50


def test_presenting_hides_the_toolbar_and_esc_ends_it(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run("x = 1\n")
    qtbot.keyClick(window, Key.Key_P)
    qtbot.waitUntil(lambda: window.isFullScreen() and window.toolbar.isHidden(), timeout=PATIENCE)
    qtbot.keyClick(window, Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.isFullScreen() and window.toolbar.isVisible(), timeout=PATIENCE)
