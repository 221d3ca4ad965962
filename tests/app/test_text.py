"""Every visible string has its Chinese translation, with the same fields; none is left over."""

from __future__ import annotations

import ast
import json
import pathlib
import string

import pytest
from PySide6.QtWidgets import QApplication, QDialogButtonBox

from stridescope.app import main, points, text
from stridescope.app.actions import ACTIONS, MENUS
from stridescope.app.debugging import NONE_BACK
from stridescope.app.lessons import LESSONS
from stridescope.app.panels import (
    PANELS,
    breakpoints,
    hooks,
    hooks_model,
    modules_model,
    reasons,
    saved_model,
    tensors_model,
    variables,
)
from stridescope.engine.events import EVENTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEAKING = {"tr": 1, "plural": 3}  # how many of the first arguments are texts; plural's first is the count


def literals(path: pathlib.Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SPEAKING:
            for argument in node.args[: SPEAKING[node.func.id]]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    found.add(argument.value)
    return found


def visible() -> set[str]:
    found = {word for path in (ROOT / "app").rglob("*.py") for word in literals(path)}
    found |= (
        {words for row in ACTIONS for words in (row.title, row.tip)}
        | set(MENUS)
        | {*reasons.REASONS, *reasons.AROUND}
        | {*points.WHAT.values(), *points.CHANGES.values(), *NONE_BACK.values(), breakpoints.HELP}
        | {word for word in variables.COLUMNS if word}
        | {*tensors_model.COLUMNS, *saved_model.COLUMNS, *hooks_model.COLUMNS, *modules_model.COLUMNS, hooks.HELP}
    )
    found |= {words for panel in PANELS for words in (panel.title, panel.help)}
    found |= {words for lesson in LESSONS for words in (lesson.title, lesson.help)}
    return found | {event.sentence for event in EVENTS}


def fields(words: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(words) if name}


def test_catalogue_is_complete() -> None:
    assert visible() - set(text.catalogue("zh")) == set()


def test_nothing_is_left_over() -> None:
    assert set(text.catalogue("zh")) - visible() == set()


def test_fields_are_the_same() -> None:
    wrong = {
        english: chinese for english, chinese in text.catalogue("zh").items() if fields(english) != fields(chinese)
    }
    assert wrong == {}


def test_catalogue_is_sorted() -> None:
    path = ROOT / "resources" / "translations" / "zh.json"
    written = list(json.loads(path.read_text(encoding="utf-8")))
    assert written == sorted(written)


def test_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="en, zh"):
        text.set_language("xx")


def test_tr_speaks_the_language() -> None:
    try:
        text.set_language("zh")
        assert text.tr("Open…") == text.catalogue("zh")["Open…"] != "Open…"
        assert text.plural(2, "{n} storage", "{n} storages").startswith("2")
    finally:
        text.set_language("en")
    assert text.tr("{n} alive", n=3) == "3 alive"


def test_qts_own_words_are_of_the_language_too(qapp: QApplication) -> None:
    found = []
    for language in ("zh", "en"):
        main.make_application("dark", language)
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        found.append([button.text() for button in box.buttons()])
    assert found == [["确定", "取消"], ["OK", "Cancel"]]
