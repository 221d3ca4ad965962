"""Every visible string passes through :func:`tr`, whose key is the English text itself.

A catalogue is one JSON object, English to translation, in ``resources/translations/LANG.json``. View-models are plain
Python and speak too, so this is not Qt's translator; ``tests/app/test_text.py`` finds what a catalogue lacks.
"""

from __future__ import annotations

import importlib.resources
import json

LANGUAGES = {"en": "English", "zh": "简体中文"}

_catalogue: dict[str, str] = {}


def set_language(language: str) -> None:
    """Speak ``language`` (a key of LANGUAGES) from now on."""
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")
    _catalogue.clear()
    if language != "en":
        _catalogue.update(catalogue(language))


def catalogue(language: str) -> dict[str, str]:
    """Return the catalogue of ``language``: English text to translation."""
    folder = importlib.resources.files("stridescope.resources") / "translations"
    entries: dict[str, str] = json.loads((folder / f"{language}.json").read_text(encoding="utf-8"))
    return entries


def tr(text: str, /, **values: object) -> str:
    """Return ``text`` in the current language, its ``{fields}`` filled in."""
    text = _catalogue.get(text, text)
    return text.format(**values) if values else text


def plural(count: int, one: str, many: str) -> str:
    """Return ``one`` or ``many``, translated; both may use ``{n}``."""
    return tr(one if count == 1 else many, n=count)
