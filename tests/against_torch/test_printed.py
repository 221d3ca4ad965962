"""What the scripts of courses and libraries are expected to print is what real PyTorch prints."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent / "scripts"
SCRIPTS = sorted(path for room in ("courses", "library", "graphs") for path in (ROOT / room).glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_pytorch_prints_it(path: pathlib.Path, torch_prints: Callable[[pathlib.Path], str]) -> None:
    assert torch_prints(path) == path.with_suffix(".expected").read_text(encoding="utf-8")
