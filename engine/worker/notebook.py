"""A notebook as a script: its code cells one after the other, with what a notebook does beyond Python."""

from __future__ import annotations

import ast
import itertools
import json
from typing import Any, NamedTuple

from stridescope.engine.recording.lines import source_lines


class Notebook(NamedTuple):
    """The script that a notebook stands for, and the lines at which its cells begin."""

    text: str
    cells: tuple[int, ...]

    def parse(self, filename: str) -> ast.Module:
        """Return the script's syntax tree; an expression that ends a cell is shown, as a notebook shows it."""
        tree = ast.parse(self.text, filename)
        lines = source_lines(self.text)
        for first, after in itertools.pairwise((*self.cells, len(lines) + 1)):
            inside = [node for node in tree.body if first <= node.lineno < after]
            if inside and isinstance(last := inside[-1], ast.Expr) and not _is_silenced(last, lines):
                last.value = _displayed(last.value)
        return tree


def notebook(source: bytes) -> Notebook:
    """Return the script that a notebook stands for; raises ValueError when the bytes are no notebook.

    Cells are parted by ``# %%`` lines, and lines of other languages (``%magic``, ``!command``) become comments.
    """
    try:
        cells = json.loads(source)["cells"]
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not JSON ({error})") from None
    except (KeyError, TypeError):
        raise ValueError("it has no cells") from None
    lines: list[str] = []
    begins = []
    for number, cell in enumerate((cell for cell in cells if cell.get("cell_type") == "code"), 1):
        begins.append(len(lines) + 1)
        lines += [f"# %% [{number}]", *_as_script(_joined(cell)), ""]
    return Notebook("\n".join(lines), tuple(begins))


def _is_silenced(last: ast.Expr, lines: list[str]) -> bool:
    """Say whether a semicolon follows the expression."""
    ending = lines[(last.end_lineno or last.lineno) - 1].encode()[last.end_col_offset or 0 :]
    return ending.lstrip().startswith(b";")


def _displayed(value: ast.expr) -> ast.expr:
    """Return the call that shows a value as the interactive interpreter does, in the place of the value."""
    show = ast.parse("__import__('sys').displayhook()", mode="eval").body
    assert isinstance(show, ast.Call)
    for node in ast.walk(show):
        if isinstance(node, ast.expr):
            ast.copy_location(node, value)
    show.args.append(value)
    return show


def _joined(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _as_script(cell: str) -> list[str]:
    lines = source_lines(cell)
    if cell.lstrip().startswith("%%"):
        return [f"# {line}" for line in lines]
    return lines if _is_python(cell) else [_commented(line) for line in lines]


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
    return (f"{indent}pass  # {bare}" if indent else f"# {bare}") if bare.startswith(("%", "!")) else line
