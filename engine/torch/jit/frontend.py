"""What TorchScript refuses to compile, found in the source of a function."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from typing import Any


class FrontendError(Exception):
    """The source cannot be compiled."""

    __module__ = "torch.jit.frontend"


class NotSupportedError(FrontendError):
    """TorchScript has no such thing."""

    __module__ = "torch.jit.frontend"


class UnsupportedNodeError(NotSupportedError):
    """TorchScript has no such statement or expression."""

    __module__ = "torch.jit.frontend"


_UNSUPPORTED: dict[type, tuple[str, str]] = {
    ast.Try: ("try blocks", "try"),
    ast.ClassDef: ("class definitions", "class"),
    ast.FunctionDef: ("function definitions", "def"),
    ast.AsyncFunctionDef: ("async function definitions", "async def"),
    ast.AsyncFor: ("async for loops", "async for"),
    ast.AsyncWith: ("async with statements", "async with"),
    ast.Import: ("import statements", "import"),
    ast.ImportFrom: ("import statements", "from"),
    ast.Global: ("global variables", "global"),
    ast.Nonlocal: ("nonlocal variables", "nonlocal"),
    ast.Yield: ("yield", "yield"),
    ast.YieldFrom: ("yield from", "yield from"),
    ast.Await: ("await", "await"),
    ast.SetComp: ("set comprehensions", "{"),
    ast.GeneratorExp: ("generator expressions", "("),
    ast.Set: ("sets", "{"),
    ast.NamedExpr: ("assignment expressions", ""),
}


def _source(function: Callable[..., Any]) -> tuple[list[str], int, str, ast.FunctionDef] | None:
    """The lines of a function, the number of the first, its file, and what it says; None where it has no source."""
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or "<unknown>"
        text = textwrap.dedent("".join(lines))
        tree = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    return (text.splitlines(), first, file, tree) if isinstance(tree, ast.FunctionDef) else None


class _Told:
    """The places of a source in error texts."""

    def __init__(self, lines: list[str], first: int, file: str, def_line: int) -> None:
        self.lines, self.first, self.file, self.def_line = lines, first, file, def_line

    def at(self, line: int, start: int, end: int) -> str:
        """The lines up to the place, with a mark below it."""
        shown = self.lines[max(self.def_line - 1, line - 4) : line]
        mark = " " * start + "~" * max(end - start, 1) + " <--- HERE"
        rest = self.lines[line : line + 2]
        return (
            f'  File "{self.file}", line {self.first + line - 1}\n' + "\n".join((*shown, mark, *rest)).rstrip() + "\n"
        )


def check(function: Callable[..., Any]) -> None:
    """Raise what compiling a function raises, as far as its source shows it.

    Raises:
        NotSupportedError: it takes any number of arguments, or has a statement that TorchScript lacks.
        RuntimeError: a name is not defined.
    """
    found = _source(function)
    if found is None:
        return
    lines, first, file, tree = found
    told = _Told(lines, first, file, tree.lineno)
    star = tree.args.vararg or tree.args.kwarg
    if star is not None:
        start = star.col_offset - (1 if star is tree.args.vararg else 2)
        raise NotSupportedError(
            "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults:\n"
            + told.at(star.lineno, start, (star.end_col_offset or start))
        )
    for node in (inner for statement in tree.body for inner in ast.walk(statement)):
        if type(node) in _UNSUPPORTED:
            what, word = _UNSUPPORTED[type(node)]
            place: Any = node
            text = told.at(place.lineno, place.col_offset, place.col_offset + max(len(word), 1))
            raise UnsupportedNodeError(f"{what} aren't supported:\n{text}")
    _check_names(function, tree, told)


def _check_names(function: Callable[..., Any], tree: ast.FunctionDef, told: _Told) -> None:
    known = {a.arg for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)}
    known |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    known |= {a.arg for n in ast.walk(tree) if isinstance(n, ast.Lambda) for a in n.args.args}
    known |= set(function.__globals__) | set(vars(builtins)) | set(function.__code__.co_freevars)
    for statement in tree.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in known:
                end = node.end_col_offset or node.col_offset
                text = told.at(node.lineno, node.col_offset, end)
                raise RuntimeError(f"\nundefined value {node.id}:\n{text}")
