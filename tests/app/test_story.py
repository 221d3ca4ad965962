"""One story in a real window: open, step, click a tensor, walk backward, scrub back to line 3."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

SCRIPT = """import torch
a = torch.arange(12.).reshape(3, 4)
b = a.t()
w = torch.ones(4, 2, requires_grad=True)
y = a @ w
loss = (y * y).sum()
loss.backward()
print(w.grad.sum().item())
"""
CHAPTERS = ["open", "step", "click", "backward", "scrub"]


@pytest.mark.timeout(300)
def test_story(x_display: str, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-P", str(Path(__file__).with_name("story_driver.py")), str(script), str(tmp_path)]
    environment = {**os.environ, "DISPLAY": x_display, "QT_QPA_PLATFORM": "xcb"}
    told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert told.stdout.split() == CHAPTERS and told.returncode == 0, told.stderr
    for chapter in CHAPTERS:
        assert QImage(str(tmp_path / f"{chapter}.png")).width() == 1600
