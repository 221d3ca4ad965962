"""What is to be run, and reading it: a script, a folder, a module (``-m``) or a notebook becomes code."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import io
import linecache
import os
import re
import sys
import tokenize
import types
import warnings
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import Any

from stridescope.engine.recording.lines import first_from, lines_with_code, source_lines
from stridescope.engine.worker.notebook import Notebook, notebook


class LaunchError(Exception):
    """The program cannot be started; the message says why in one line."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of the user: the path of a script, or a module's name with ``module``, and its arguments."""

    path: str
    argv: tuple[str, ...] = ()
    module: bool = False


@dataclasses.dataclass(frozen=True)
class Loaded:
    """A program read from disk: its bytes are compiled by :meth:`compile`, whose errors are the user's."""

    filename: str
    folder: str  # what comes first on sys.path
    source: bytes | str
    spec: ModuleSpec | None = None
    notebook: Notebook | None = None

    @property
    def text(self) -> str:
        """What people see, "" when it is the file itself."""
        return self.notebook.text if self.notebook is not None else ""

    def compile(self) -> types.CodeType:
        """Return the code, as Python would compile the file: byte order mark, coding cookie, line ends."""
        try:
            source = self.notebook.parse(self.filename) if self.notebook is not None else self.source
            return compile(source, self.filename, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise self._as_python_says(error) from None

    def _as_python_says(self, error: SyntaxError) -> SyntaxError:
        """Word a fault of a file's bytes as Python does when it reads the file itself."""
        fault = None
        if isinstance(self.source, bytes) and str(error.msg).startswith("(unicode error) 'utf-8'"):
            fault = _not_utf8(self.source, self.filename)
        return fault or error.with_traceback(None)

    def names(self) -> dict[str, Any]:
        """Return the names that ``__main__`` has before its first line."""
        spec = self.spec
        return {
            "__file__": self.filename,
            "__builtins__": sys.modules["builtins"],
            "__loader__": spec.loader if spec else SourceFileLoader("__main__", self.filename),
            "__spec__": spec,
            "__package__": spec.parent if spec else None,
            "__cached__": spec.cached if spec else None,
            **({"__annotations__": {}} if sys.version_info < (3, 14) else {}),
        }


def load(program: Program) -> Loaded:
    """Read a program; raises :class:`LaunchError` when there is nothing to read."""
    return _load_module(program.path) if program.module else _load_file(program.path)


def next_executable(path: str, line: int) -> int:
    """Return the first line from ``line`` on that something can stop at: blank lines and comments hold no code."""
    try:
        return first_from(_executable_lines(path, os.stat(path).st_mtime_ns), line)
    except (LaunchError, OSError, SyntaxError, ValueError):
        return line


@functools.lru_cache(maxsize=64)
def _executable_lines(path: str, changed: int) -> list[int]:
    """Return the lines of a file that have code, in order; ``changed`` is when the file was written."""
    with warnings.catch_warnings(action="ignore"):  # they were shown when the script itself was compiled
        return lines_with_code(_load_file(path).compile())


def _load_file(path: str) -> Loaded:
    filename = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    if os.path.isdir(path):
        inside = os.path.join(filename, "__main__.py")
        if not os.path.isfile(inside):
            raise LaunchError(f"can't find '__main__' module in '{path}'")
        return Loaded(inside, filename, _read(inside))
    folder = os.path.dirname(os.path.realpath(path))
    source = _read(filename)
    if path.endswith(".ipynb"):
        return _load_notebook(filename, folder, source)
    return Loaded(filename, folder, source)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise LaunchError(f"can't open file '{path}': {error.strerror}") from None


def _load_notebook(filename: str, folder: str, source: bytes) -> Loaded:
    try:
        found = notebook(source)
    except ValueError as error:
        raise LaunchError(f"{filename} is not a notebook: {error}") from None
    # Without a time of change the cache keeps the entry, so that tracebacks and warnings show the cells' lines.
    linecache.cache[filename] = (len(found.text), None, [line + "\n" for line in source_lines(found.text)], filename)
    return Loaded(filename, folder, found.text, notebook=found)


def _load_module(name: str) -> Loaded:
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        spec = _main_spec(name)
    finally:
        sys.path.remove(folder)
    if spec.origin is None or not isinstance(spec.loader, SourceFileLoader):
        raise LaunchError(f"the module {name} has no Python source to run")
    return Loaded(spec.origin, folder, _read(spec.origin), spec)


def _main_spec(name: str) -> ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name, spec = f"{name}.__main__", importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise LaunchError(f"no module named {name} can be run: {error}") from None
    if spec is None:
        raise LaunchError(f"no module named {name}")
    return spec


def _not_utf8(source: bytes, filename: str) -> SyntaxError | None:
    """Return Python's own words for a file that is not UTF-8 and says nothing of its encoding."""
    cookie = re.compile(rb"^[ \t\f]*#.*?coding[:=]")
    if any(cookie.match(line) for line in source.splitlines()[:2]):
        return None
    for number, line in enumerate(source.splitlines(), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            return SyntaxError(
                f"Non-UTF-8 code starting with '\\x{line[error.start]:02x}' in file {filename} on line {number}, but "
                "no encoding declared; see https://peps.python.org/pep-0263/ for details"
            )
    return None


def text_of(source: bytes) -> str:
    """Return a Python file's text: decoded by its own cookie, line ends as ``\\n``."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return io.TextIOWrapper(io.BytesIO(source), encoding, errors="replace").read()
