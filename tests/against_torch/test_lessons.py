"""Every bundled lesson prints on the engine what it prints on real PyTorch."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LESSONS = [
    path
    for path in sorted((ROOT / "resources" / "lessons").glob("*.py"))
    if '"cuda"' not in path.read_text(encoding="utf-8")  # real PyTorch would need a GPU for these
]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_lesson(
    lesson: pathlib.Path, torch_prints: Callable[[pathlib.Path], str], engine_prints: Callable[[pathlib.Path], str]
) -> None:
    assert engine_prints(lesson) == torch_prints(lesson)


def test_there_are_lessons() -> None:
    assert LESSONS
