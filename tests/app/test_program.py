"""A program run by its path or as a module of its package, as a person switches between them."""

from __future__ import annotations

from pathlib import Path

import pytest
from debugger import reach
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from stridescope.app import main
from stridescope.app.main_window import MainWindow
from stridescope.app.program import Program

PACKAGE = {
    "course/__init__.py": "",
    "course/lesson/__init__.py": "",
    "course/net.py": "WIDTH = 3\n",
    "course/lesson/__main__.py": "import sys\nfrom ..net import WIDTH\nprint(__name__, WIDTH, sys.argv[1:])\n",
    "course/alone.py": "print(__package__)\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, text in PACKAGE.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def to_the_end(qtbot: QtBot, window: MainWindow) -> str:
    reach(qtbot, window)
    qtbot.keyClick(window, Qt.Key.Key_F5)
    reach(qtbot, window, "ended")
    window.refresh()
    return str(window.workbench.panels["output"].view.toPlainText())


def test_a_relative_import_that_fails_is_run_as_a_module(qtbot: QtBot, window: MainWindow, package: Path) -> None:
    window.open(str(package / "course" / "lesson" / "__main__.py"), ("7",))
    reach(qtbot, window)
    qtbot.keyClick(window, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: "ImportError" in window.banner.words)
    assert window.banner.words.endswith("Run › Run as a module")
    window.actions_by_id["as_module"].trigger()
    assert window.banner.words == "This is python -m course.lesson 7"
    assert to_the_end(qtbot, window) == "__main__ 3 ['7']\n"
    window.editing.restart()
    assert to_the_end(qtbot, window) == "__main__ 3 ['7']\n"  # it stays a module


def test_it_goes_back_to_being_a_script(qtbot: QtBot, window: MainWindow, package: Path) -> None:
    window.open(str(package / "course" / "alone.py"))
    assert to_the_end(qtbot, window) == "None\n"
    for printed in ("course\n", "None\n"):
        window.actions_by_id["as_module"].trigger()
        assert to_the_end(qtbot, window) == printed


def test_a_name_that_cannot_be_imported_is_refused(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    (tmp_path / "lesson 1.py").write_text("print(1)\n")
    window.open(str(tmp_path / "lesson 1.py"))
    reach(qtbot, window)
    recording = window.session.recording
    window.actions_by_id["as_module"].trigger()
    assert window.banner.words == "lesson 1 is no name that a module can have"
    assert window.session.recording is recording


def test_the_shells_folder_is_where_a_module_is_looked_for(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(package)
    found = Program.of_module("course.lesson", (), "auto")
    assert found.path == str(package / "course" / "lesson" / "__main__.py")
    assert found == Program(found.path).as_module()
    assert Program.of_module("course.alone", ("a b",), "auto").command == "python -m course.alone 'a b'"


def test_a_module_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main.main(["-m", "no.such"]) == 2
    assert capsys.readouterr().err == f"stridescope: there is no module no.such in {tmp_path}\n"
