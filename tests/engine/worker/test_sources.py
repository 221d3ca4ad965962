"""Whatever a program is made of, it is stepped and recorded: packages, notebooks, any encoding, any path."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine.events import LineReached, OutputWritten
from stridescope.engine.recording.lines import source_lines
from stridescope.engine.recording.reader import Recording
from stridescope.engine.worker.protocol import Breakpoint, Ended, Evaluate, Evaluated, Run, Step, Stopped

Writer = Callable[..., pathlib.Path]
Starter = Callable[..., Any]
BYTES = {
    "bom_crlf_tabs": (
        b'\xef\xbb\xbfword = "\xc3\xa9"\r\nif word:\r\n\tprint(ascii(word))\r\nlast = 1\r\n',
        "'\\xe9'\n",
    ),
    "coding_gbk": (b'# -*- coding: gbk -*-\nword = "\xc4\xe3"\nprint(ascii(word))\nlast = 1\n', "'\\u4f60'\n"),
    "coding_latin1": (b'# coding: latin-1\nword = "\xe9"\nprint(ascii(word))\nlast = 1\n', "'\\xe9'\n"),
    "bare_cr": (b'word = "x"\rif word:\r    print(ascii(word))\rlast = 1\r', "'x'\n"),
    "form_feed": (b'word = "x"\n\x0cword\nprint(ascii(word))\nlast = 1\n', "'x'\n"),
}


def printed(work: Any) -> str:
    return "".join(event.text for event in work.events(OutputWritten) if event.stream == 1)


@pytest.mark.parametrize("name", BYTES)
def test_a_script_in_any_encoding_and_path_stops_at_its_lines(name: str, script: Writer, work: Starter) -> None:
    source, output = BYTES[name]
    path = script(source, f"一个 文件夹/你好 {name}.py")
    started = work(path, breakpoints=(Breakpoint(path=str(path), line=3),))
    started.wait(Stopped)
    started.send(Run())
    assert started.state(started.wait(Stopped).step).line == 3
    started.send(Evaluate(1, "ascii(word)"))
    assert started.wait(Evaluated).text == repr(output.rstrip())
    started.send(Run())
    assert started.wait(Ended).status == 0
    assert printed(started) == output
    assert sorted({event.line for event in started.events(LineReached)})[-1] == 4
    with Recording.open(started.recording) as recording:
        shown = recording.sources[1]
        assert shown.path == str(path) and source_lines(shown.text)[3] == "last = 1"


def test_a_package_is_stepped_into(script: Writer, work: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    script("", "package/__init__.py")
    script("from . import helper\n\n\ndef run(x):\n    return helper.double(x)\n", "package/inside/__init__.py")
    script("def double(x):\n    return x * 2\n", "package/inside/helper.py")
    main = script(
        "from .inside import run\nimport sys\ny = run(4)\nprint(__name__, y, sys.argv[1:])\n", "package/tool.py"
    )
    monkeypatch.chdir(main.parents[1])
    started = work("package.tool", "one", module=True)
    started.wait(Stopped)
    places = []
    for _ in range(20):
        started.send(Step("line", "into"))
        answer = started.wait((Stopped, Ended))
        if isinstance(answer, Ended):
            break
        with Recording.open(started.recording) as recording:
            state = recording.state(answer.step)
            places.append((pathlib.Path(recording.sources[state.source].path).name, state.line))
    assert ("helper.py", 2) in places and places[-1] == ("tool.py", 4)
    assert printed(started) == "__main__ 8 ['one']\n"


def test_a_notebook_is_stepped_cell_by_cell(script: Writer, work: Starter) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import torch\n", "x = torch.ones(2)"]},
        {
            "cell_type": "code",
            "source": ["y = (x\n", "% 2)  # no magic\n", "print(len('a\u2028b'))\n", "(x + 1).sum()"],
        },
    ]
    started = work(script(json.dumps({"cells": cells, "nbformat": 4}), "讲义 1.ipynb"))
    stopped, lines = started.wait(Stopped), []
    while not isinstance(stopped, Ended):
        with Recording.open(started.recording) as recording:
            state = recording.state(stopped.step)
            lines.append(source_lines(recording.sources[state.source].text)[state.line - 1].strip())
        started.send(Step("line", "over"))
        stopped = started.wait((Stopped, Ended))
    assert stopped.status == 0 and printed(started) == "3\ntensor(4.)\n"
    wanted = ["import torch", "x = torch.ones(2)", "y = (x", "(x + 1).sum()"]
    assert [line for line in dict.fromkeys(lines) if line in wanted] == wanted
