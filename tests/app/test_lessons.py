"""The lessons of the welcome page are the files in resources/lessons, all of them."""

from __future__ import annotations

import pathlib

import pytest

from stridescope.app.lessons import LESSONS, Lesson

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "resources" / "lessons"


def test_every_file_is_listed() -> None:
    assert sorted(lesson.file for lesson in LESSONS) == sorted(path.name for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.file)
def test_lesson(lesson: Lesson) -> None:
    assert lesson.title and lesson.help
    compile(pathlib.Path(lesson.path).read_text(encoding="utf-8"), lesson.file, "exec")
