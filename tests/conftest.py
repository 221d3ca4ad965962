"""What every test runs under: Qt off screen, and a virtual screen for those that drive a real window."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # before pytest-qt makes the application


@pytest.fixture(scope="session")
def x_display() -> Iterator[str]:
    """The name of a virtual X screen (":7"), for a window in a process of its own."""
    if sys.platform != "linux" or not shutil.which("Xvfb"):
        pytest.skip("a real window is driven under Xvfb, which this machine does not have")
    read_end, write_end = os.pipe()
    command = ["Xvfb", "-displayfd", str(write_end), "-screen", "0", "1920x1200x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=[write_end], stderr=subprocess.DEVNULL) as server:
        os.close(write_end)
        with os.fdopen(read_end) as answer:
            yield f":{answer.readline().strip()}"
        server.terminate()
