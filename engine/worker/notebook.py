"""A notebook as a script: its code cells one after the other, with what a notebook does beyond Python."""

from __future__ import annotations

import ast
import json
from typing import Any

from stridescope.engine.recording.lines import source_lines


def notebook_text(source: bytes) -> str:
    """Return the script that a notebook stands for; raises ValueError when the bytes are no notebook.

    Cells are parted by ``# %%`` lines; lines of other languages (``%magic``, ``!command``) become comments, and a
    cell that ends in an expression prints its value.
    """
    try:
        cells = json.loads(source)["cells"]
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not JSON ({error})") from None
    except (KeyError, TypeError):
        raise ValueError("it has no cells") from None
    code = [_joined(cell) for cell in cells if cell.get("cell_type") == "code"]
    return "\n".join(f"# %% [{number}]\n{_as_script(text)}" for number, text in enumerate(code, 1))


def _joined(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _as_script(cell: str) -> str:
    if cell.lstrip().startswith("%%"):
        return "\n".join(f"# {line}" for line in source_lines(cell)) + "\n"
    lines = source_lines(cell)
    if not _is_python(cell):
        lines = [_commented(line) for line in lines]
    return "\n".join(_last_shown(lines)) + "\n"


def _is_python(cell: str) -> bool:
    """Say whether a cell needs no change: a line that begins with % can go on with an expression or a string."""
    try:
        ast.parse(cell)
    except (SyntaxError, ValueError):
        return False
    return True


def _commented(line: str) -> str:
    """Turn a line that is not Python into a comment; a block that holds nothing else needs a ``pass`` before it."""
    bare = line.lstrip()
    indent = line[: len(line) - len(bare)]
    return f"{indent}pass  # {bare}" if bare.startswith(("%", "!")) else line


def _last_shown(lines: list[str]) -> list[str]:
    """Print the value of an expression that ends a cell, unless a semicolon silences it or it is a call of print."""
    try:
        body = ast.parse("\n".join(lines)).body
    except SyntaxError:  # Python will say what is wrong, in its own words, when the whole is compiled
        return lines
    if not body or not isinstance(last := body[-1], ast.Expr) or lines[-1].rstrip().endswith(";"):
        return lines
    first, after = last.lineno - 1, last.end_lineno or last.lineno
    if last.col_offset or any(line.strip() and not line.lstrip().startswith("#") for line in lines[after:]):
        return lines
    return [*lines[:first], "_ = (", *lines[first:after], ")", "if _ is not None: print(repr(_))", *lines[after:]]
