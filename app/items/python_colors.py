"""Colours of Python source, line by line: keywords, numbers, calls, strings, comments."""

from __future__ import annotations

import keyword
import re

from PySide6.QtGui import QSyntaxHighlighter, QTextCharFormat, QTextDocument

from stridescope.app import theme as themes

_TOKEN = re.compile(
    r"""(?P<comment>\#.*)
      | (?P<string>[rbfuRBFU]{0,2}(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))
      | (?P<number>\b(?:0[xXoObB][\da-fA-F_]+|\d[\d_]*\.?[\d_]*(?:[eE][+-]?\d+)?j?))
      | (?P<call>\b[A-Za-z_]\w*(?=\s*\())
      | (?P<word>\b[A-Za-z_]\w*)""",
    re.VERBOSE,
)
_TRIPLE = re.compile(r"'''|\"\"\"")
_ROLES = {"comment": "faint", "string": "string", "number": "number", "call": "fwd", "keyword": "keyword"}
_OUTSIDE, _STATES = -1, {"'''": 1, '"""': 2}


class PythonColors(QSyntaxHighlighter):
    """Colours a document with the active theme; :meth:`rehighlight` after a change of theme."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._document = document
        self._formats: dict[str, QTextCharFormat] = {}
        self.restyle()

    def colour(self, wanted: bool) -> None:
        """Colour the text that is set next, or leave it plain: what is no Python need not be read as such."""
        if wanted != (self.document() is not None):
            self.setDocument(self._document if wanted else None)

    def restyle(self) -> None:
        """Take the colours of the active theme."""
        theme = themes.active()
        for role, token in _ROLES.items():
            style = QTextCharFormat()
            style.setForeground(theme.color(token))
            style.setFontItalic(role == "comment")
            self._formats[role] = style
        self.rehighlight()

    def highlightBlock(self, text: str) -> None:
        start = self._close_triple(text)
        while start < len(text):
            opening = _TRIPLE.search(text, start)
            self._color_code(text, start, opening.start() if opening else len(text))
            if not opening:
                return
            closing = text.find(opening.group(), opening.end())
            end = closing + 3 if closing >= 0 else len(text)
            self.setFormat(opening.start(), end - opening.start(), self._formats["string"])
            if closing < 0:
                self.setCurrentBlockState(_STATES[opening.group()])
            start = end

    def _close_triple(self, text: str) -> int:
        """Colour what an open triple quote still covers and return where code begins."""
        state = self.previousBlockState()
        self.setCurrentBlockState(_OUTSIDE)
        mark = next((quotes for quotes, number in _STATES.items() if number == state), None)
        if mark is None:
            return 0
        closing = text.find(mark)
        end = closing + 3 if closing >= 0 else len(text)
        self.setFormat(0, end, self._formats["string"])
        if closing < 0:
            self.setCurrentBlockState(state)
        return end

    def _color_code(self, text: str, start: int, end: int) -> None:
        for match in _TOKEN.finditer(text, start, end):
            role = match.lastgroup or ""
            if role in ("word", "call") and keyword.iskeyword(match.group()):
                role = "keyword"
            if role in self._formats:
                self.setFormat(match.start(), match.end() - match.start(), self._formats[role])
