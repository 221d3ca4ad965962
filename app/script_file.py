"""Reading and writing a script as its author keeps it: its encoding, byte order mark and line ends stay theirs."""

from __future__ import annotations

import codecs
import io
import tokenize
from pathlib import Path

from stridescope.engine.recording.lines import source_lines


def is_notebook(path: str) -> bool:
    """Whether a script is a notebook, whose cells are run but not edited here."""
    return path.endswith(".ipynb")


def read_script(path: str) -> str:
    """Return a script's text, its line ends as newlines, unknown bytes replaced; may raise OSError."""
    data = Path(path).read_bytes()
    encoding, _ = _form(data)
    return data.decode(encoding, errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def lines_on_disk(path: str) -> list[str]:
    """Return a script's lines as they are now; none where it cannot be read, or is a notebook of cells."""
    try:
        return [] if is_notebook(path) else source_lines(read_script(path))
    except OSError:
        return []


def write_script(path: str, text: str) -> None:
    """Write a text in the form that the file has now; one that its encoding cannot hold raises ValueError."""
    file = Path(path)
    encoding, newline = _form(file.read_bytes() if file.exists() else b"")
    file.write_bytes(text.replace("\n", newline).encode(encoding))


def _form(data: bytes) -> tuple[str, str]:
    """Return a file's encoding (``utf-8-sig`` where it begins with a mark) and its line end."""
    newline = "\r\n" if b"\r\n" in data else "\n"
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError:  # an encoding that there is not, or no UTF-8 after all
        encoding = "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
    return encoding, newline
