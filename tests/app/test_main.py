"""Pictures without a screen: of the window and of each panel; what cannot be had is one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from stridescope.app import main
from stridescope.engine.recording.reader import Recording

CLI = [sys.executable, "-P", "-m", "stridescope.app.cli"]


@pytest.fixture(autouse=True)
def settings_elsewhere(qtbot: QtBot, tmp_path: Path) -> None:
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path / "settings"))


def test_the_whole_window(strides: Recording, tmp_path: Path) -> None:
    out = tmp_path / "window.png"
    main.render(strides.path, 50, str(out), theme="light", size=(1280, 800))
    image = QImage(str(out))
    assert (image.width(), image.height()) == (1280, 800)
    assert image.pixelColor(1275, 400).lightness() > 200
    assert not (tmp_path / "settings").exists(), "a picture leaves no trace in the settings"


def test_languages_differ(strides: Recording, tmp_path: Path) -> None:
    try:
        for lang in ("en", "zh"):
            main.render(strides.path, 50, str(tmp_path / f"{lang}.png"), panel="story", lang=lang)
    finally:
        main.make_application("dark", "en")
    assert QImage(str(tmp_path / "en.png")) != QImage(str(tmp_path / "zh.png"))


@pytest.mark.parametrize("panel", ["editor", "storage", "graph", "allocator", "timeline"])
def test_one_panel(allocator: Recording, tmp_path: Path, panel: str) -> None:
    out = tmp_path / "panel.png"
    main.render(allocator.path, main.LAST, str(out), panel=panel)
    assert QImage(str(out)).width() > 100


def test_what_cannot_be_had(strides: Recording, tmp_path: Path) -> None:
    out = str(tmp_path / "x.png")
    with pytest.raises(ValueError, match="no panel 'nope'; there are editor"):
        main.render(strides.path, 1, out, panel="nope")
    with pytest.raises(ValueError, match="step 9999 is not in the recording"):
        main.render(strides.path, 9999, out)
    with pytest.raises(OSError, match="cannot be written"):
        main.render(strides.path, 1, str(tmp_path / "nowhere" / "x.png"))


def test_the_command_says_nothing_but_what_is_wrong(strides: Recording, tmp_path: Path) -> None:
    out = tmp_path / "x.png"
    good = subprocess.run(
        [*CLI, "screenshot", strides.path, "--step", "5", "-o", str(out)], capture_output=True, text=True
    )
    assert (good.returncode, good.stdout, good.stderr) == (0, "", "") and out.is_file()
    bad = subprocess.run(
        [*CLI, "screenshot", strides.path, "--panel", "x", "-o", str(out)], capture_output=True, text=True
    )
    assert bad.returncode == 2 and len(bad.stderr.splitlines()) == 1


def test_the_demo_runs_a_script_to_its_end(tmp_path: Path) -> None:
    script, out = tmp_path / "demo.py", tmp_path / "demo.png"
    script.write_text("x = 1\nprint('seen')\n", encoding="utf-8")
    command = [sys.executable, "-P", "-m", "stridescope.app.main", "--offscreen-demo", str(out), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert QImage(str(out)).width() == 1600
    assert subprocess.run([*command[:4], "--scale", "1.5", *command[4:]], timeout=100).returncode == 0
    assert QImage(str(out)).width() == 2400
    for scale in ("9", "large"):
        words = [*command[:4], "--scale", scale, *command[4:]]
        refused = subprocess.run(words, capture_output=True, text=True, timeout=100)
        assert refused.returncode == 2 and f"{scale} is not between 0.5 and 4.0" in refused.stderr
