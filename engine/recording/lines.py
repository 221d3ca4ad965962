"""Lines of Python that something can stop at."""

from __future__ import annotations

import functools
import re
import types
import warnings

_LINE_END = re.compile(r"\r\n|\r|\n")


def source_lines(text: str) -> list[str]:
    """Return a source text's lines as Python counts them: a form feed, or U+2028 in a string, ends none."""
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def lines_with_code(code: types.CodeType) -> list[int]:
    """Return the lines of a compiled file that have code, in order: blank lines and comments have none."""
    waiting, lines = [code], set[int]()
    while waiting:
        code = waiting.pop()
        lines.update(number for _, _, number in code.co_lines() if number)
        waiting += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return sorted(lines)


def first_from(lines: list[int], line: int) -> int:
    """Return the first of ``lines`` from ``line`` on, ``line`` itself where there is none."""
    return next((number for number in lines if number >= line), line)


@functools.lru_cache(maxsize=64)
def lines_of_text(text: str) -> list[int]:
    """Return the lines of a source text that have code; none where it is no Python. Nothing of it is run."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return lines_with_code(compile(text, "<recorded>", "exec", dont_inherit=True))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
