"""A script is read and written as its author keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stridescope.app.script_file import is_notebook, read_script, write_script

FORMS = {
    "plain": ("a = 1\n", b"a = 1\n"),
    "crlf": ("a = 1\n\tb\n", b"a = 1\r\n\tb\r\n"),
    "mark": ("a = 'é'\n", b"\xef\xbb\xbfa = '\xc3\xa9'\n"),
    "gbk": ("# coding: gbk\na = '你好'\n", b"# coding: gbk\na = '\xc4\xe3\xba\xc3'\n"),
    "latin1": ("# coding: latin-1\na = 'é'\n", b"# coding: latin-1\na = '\xe9'\n"),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_form_stays(name: str, tmp_path: Path) -> None:
    text, data = FORMS[name]
    path = tmp_path / "你好 script.py"
    path.write_bytes(data)
    assert read_script(str(path)) == text
    write_script(str(path), text)
    assert path.read_bytes() == data


def test_what_the_encoding_cannot_hold_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_bytes(FORMS["latin1"][1])
    with pytest.raises(ValueError, match="can't encode"):
        write_script(str(path), "# coding: latin-1\na = '你'\n")
    assert path.read_bytes() == FORMS["latin1"][1]


def test_a_notebook_is_known_by_its_name() -> None:
    assert is_notebook("lecture.ipynb") and not is_notebook("lecture.py")
