"""Scripts as courses and libraries have them print under the engine what they printed under real PyTorch.

Beside each script lies a ``.expected``, written by ``python -W ignore SCRIPT.py`` with real PyTorch 2.13;
``tests/against_torch/test_printed.py`` holds it against one again.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable

import pytest

SCRIPTS = sorted(
    path
    for room in ("courses", "library", "graphs")
    for path in (pathlib.Path(__file__).parents[2] / "scripts" / room).glob("*.py")
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_prints_what_pytorch_prints(path: pathlib.Path, run: Callable[..., tuple[int, str, str]]) -> None:
    status, output, errors = run(path, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    assert (status, output) == (0, path.with_suffix(".expected").read_text(encoding="utf-8")), errors
