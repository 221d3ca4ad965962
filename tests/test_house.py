"""The size laws: small functions, small files, a sentence on every module."""

from __future__ import annotations

import ast
import pathlib
import statistics
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ("app", "engine", "packaging", "resources")
FILES = sorted(path for room in (*ROOMS, "tests") for path in (ROOT / room).rglob("*.py"))
LONGEST_FILE = 500
LONGEST_FUNCTION = 80
MEDIAN_FUNCTION = 8
NINTH_DECILE = 25


def parse(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: pathlib.Path) -> Iterator[tuple[str, int]]:
    """Each function of a file with its number of lines."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def shown(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_file(path: pathlib.Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    assert [name for name, lines in functions(path) if lines > LONGEST_FUNCTION] == []
    assert ast.get_docstring(parse(path)) or "lessons" in path.parts, "begin the file with a sentence on what it is"


@pytest.mark.parametrize("room", ROOMS)
def test_functions_of_a_room_are_short(room: str) -> None:
    lengths = [lines for path in (ROOT / room).rglob("*.py") for _, lines in functions(path)]
    if len(lengths) >= 10:
        assert statistics.median(lengths) <= MEDIAN_FUNCTION
        assert statistics.quantiles(lengths, n=10)[-1] <= NINTH_DECILE
