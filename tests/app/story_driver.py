"""Drives a real window on the X display of ``DISPLAY`` with the mouse and the keyboard; run by test_story.py.

Usage: story_driver.py SCRIPT FOLDER. Leaves pictures in FOLDER and prints one line a chapter; ends with status 0 when
every chapter was seen. Input goes through the X server where xdotool is installed, else through Qt's own test events.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEventLoop, QPoint, QSettings, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from stridescope.app import main
from stridescope.app.panels.graph import GraphPanel

PATIENCE = 60.0
KEYS = {
    "F10": Qt.Key.Key_F10,
    "F5": Qt.Key.Key_F5,
    "Escape": Qt.Key.Key_Escape,
    "alt+1": Qt.Key.Key_1,
    "alt+2": Qt.Key.Key_2,
}
XDOTOOL = shutil.which("xdotool")


class Driver:
    """A hand on a window, and an eye that waits."""

    def __init__(self, folder: Path) -> None:
        QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(folder))
        self.application = main.make_application("dark", "en")
        self.window = main.make_window()
        self.window.resize(1600, 1000)
        self.window.show()
        QTest.qWaitForWindowExposed(self.window)
        self.folder = folder
        if XDOTOOL:
            self.tool("windowfocus", str(int(self.window.winId())))
        else:  # no window manager gives the keyboard to a new window
            self.window.activateWindow()
            QTest.qWaitForWindowActive(self.window)

    def tool(self, *words: str) -> None:
        subprocess.run([str(XDOTOOL), *words], check=True, timeout=20)

    def wait(self, seen: Callable[[], bool], what: str) -> None:
        """Let the window live until ``seen``; fail after a while."""
        until = time.monotonic() + PATIENCE
        while not seen():
            if time.monotonic() > until:
                raise SystemExit(f"not seen: {what}")
            self.application.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)

    def press(self, key: str) -> None:
        """Press a key of the keyboard."""
        if XDOTOOL:
            self.tool("key", key)
        else:
            alt = Qt.KeyboardModifier.AltModifier if key.startswith("alt") else Qt.KeyboardModifier.NoModifier
            QTest.keyClick(self.window, KEYS[key], alt)

    def click(self, widget: QWidget, place: QPoint) -> None:
        """Click at a place of a widget."""
        if XDOTOOL:
            at = widget.mapToGlobal(place)
            self.tool("mousemove", str(at.x()), str(at.y()), "click", "1")
        else:
            QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=place)

    def chapter(self, name: str) -> None:
        """Take a picture of what is seen and say so."""
        self.application.processEvents()
        self.window.grab().save(str(self.folder / f"{name}.png"))
        print(name, flush=True)


def open_and_step(driver: Driver, script: str) -> None:
    window = driver.window
    window.open(script)
    driver.wait(lambda: window.session.status == "waiting", "the first line")
    driver.chapter("open")
    driver.press("alt+1")
    driver.wait(lambda: window.stepping.grain == "line", "steps are lines")
    for line in range(2, 6):
        driver.press("F10")
        driver.wait(
            lambda line=line: window.session.status == "waiting" and editor_line(driver) == line, f"line {line}"
        )  # type: ignore[misc]
    driver.chapter("step")


def click_a_tensor(driver: Driver) -> None:
    panels = driver.window.workbench.panels
    table = panels["tensors"].table
    row = next(i for i, shown in enumerate(table.rows.rows) if shown.cells[0] == "b")
    driver.click(table.viewport(), table.visualRect(table.rows.index(row, 1)).center())
    driver.wait(lambda: panels["storage"].picture.grids[-1].title.startswith("b"), "b in the storage panel")
    driver.chapter("click")


def backward(driver: Driver) -> None:
    window, graph = driver.window, driver.window.workbench.panels["graph"]
    driver.press("Escape")
    driver.press("alt+2")
    driver.wait(lambda: window.stepping.grain == "op", "steps are ops")
    names = []
    for _ in range(60):
        if running(graph) and (not names or names[-1] != running(graph)):
            names.append(running(graph))
        if len(names) >= 3:
            break
        before = window.time.head
        driver.press("F10")
        driver.wait(
            lambda before=before: window.time.head > before and window.session.status != "running", "the next op"
        )  # type: ignore[misc]
    if len(names) < 3:
        raise SystemExit(f"not seen: backward, only {names}")
    driver.chapter("backward")


def scrub_back(driver: Driver) -> None:
    window, panels = driver.window, driver.window.workbench.panels
    driver.press("F5")
    driver.wait(lambda: window.session.status == "ended", "the end")
    recording = window.session.recording
    assert recording is not None
    driver.press("alt+1")
    driver.wait(lambda: window.stepping.grain == "line", "steps are lines")
    timeline, target = panels["timeline"], int(recording.lines()[2])
    driver.click(timeline, QPoint(round(timeline.axis().x(target)), 40))
    driver.wait(lambda: window.time.view == target and panels["timeline"].picture.view == target, "the third line")
    assert editor_line(driver) == 3
    assert [row.cells[0] for row in panels["tensors"].table.rows.rows if not row.quiet] == ["a"]
    assert panels["graph"].picture.place.ids == ()
    driver.chapter("scrub")


def editor_line(driver: Driver) -> int:
    picture = driver.window.workbench.panels["editor"].picture
    return picture.line if picture else 0


def running(graph: GraphPanel) -> str:
    """Return the backward node that the graph panel shows as running, or ""."""
    shown = graph.picture
    if shown is None or not shown.title.startswith("Graph — backward") or not shown.now:
        return ""
    return shown.face(shown.now).title


def story(script: str, folder: Path) -> None:
    driver = Driver(folder)
    open_and_step(driver, script)
    click_a_tensor(driver)
    backward(driver)
    scrub_back(driver)
    driver.window.close()


if __name__ == "__main__":
    story(sys.argv[1], Path(sys.argv[2]))
