"""A program prints, fails and ends under the engine as it does under Python itself, recorded or not."""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
from collections.abc import Callable

import pytest

from stridescope.engine.recording.reader import Recording

PROGRAMS = sorted((pathlib.Path(__file__).parents[2] / "scripts" / "as_python").glob("*.py"))
INPUT = b"Ada\none\ntwo\n"

Runner = Callable[..., tuple[int, str, str]]
Writer = Callable[..., pathlib.Path]
SOURCES = {
    "bom_crlf_tabs": b'\xef\xbb\xbfprint("\xc3\xa9")\r\nif True:\r\n\tprint("tab")\r\nraise ValueError("line 4")\r\n',
    "coding_gbk": b'# -*- coding: gbk -*-\nword = "\xc4\xe3\xba\xc3"\nprint(ascii(word))\n1 / 0  # \xc4\xe3\xba\xc3\n',
    "coding_latin1": b'# coding: latin-1\nprint(ascii("\xe9"))\n',
    "not_utf8": b'print("never")\nword = "\xe9"\n',
    "broken_syntax": b'print("never")\nvalues = (1, 2\nprint(values)\n',
    "bad_indent": b"if True:\nprint(1)\n",
    "empty": b"",
}


def uncounted(errors: str) -> str:
    """Leave out how deep a recursion went, and in what it ended."""
    return re.sub(r"(repeated|maximum recursion depth exceeded).*", r"\1", errors)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_runs_as_python_runs_it(path: pathlib.Path, python: Runner, run: Runner) -> None:
    wanted = python(path, "one", "--two", input=INPUT)
    assert run(path, "one", "--two", input=INPUT) == wanted


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_is_recorded_as_python_runs_it(
    path: pathlib.Path, tmp_path: pathlib.Path, python: Runner, record: Runner
) -> None:
    status, output, errors = python(path, "one", "--two", input=INPUT)
    recorded = record(path, "one", "--two", input=INPUT)
    assert recorded[:2] == (status, output)
    # Watching takes a few levels of Python's stack: a recursion without end is cut off that much earlier.
    assert uncounted(recorded[2]) == uncounted(errors)
    with Recording.open(tmp_path / "recorded.stride") as recording:
        assert recording.meta["ended"] and recording.meta["status"] == status


@pytest.mark.parametrize("name", SOURCES)
def test_bytes_of_a_script_are_read_as_python_reads_them(
    name: str, script: Writer, python: Runner, run: Runner
) -> None:
    path = script(SOURCES[name], f"a folder/你好 {name}.py")
    assert run(path) == python(path)


def test_a_relative_path_is_shown_as_python_shows_it(script: Writer, python: Runner, run: Runner) -> None:
    path = script("print(__file__, sys.argv, sys.path[0])\n1 / 0\n", "inside/user.py")
    relative, folder = os.path.join(".", "inside", "user.py"), path.parents[1]
    assert run(relative, cwd=folder) == python(relative, cwd=folder)


def test_a_folder_runs_its_main(script: Writer, python: Runner, run: Runner) -> None:
    path = script("import helper\nprint(helper.value, __name__)\n", "program/__main__.py")
    script("value = 7\n", "program/helper.py")
    assert run(path.parent) == python(path.parent) == (0, "7 __main__\n", "")


def test_a_module_runs_with_its_package(script: Writer, python: Runner, run: Runner) -> None:
    script("", "package/__init__.py")
    script("from . import helper\nprint(__name__, __package__, __spec__.name, helper.value)\n1/0\n", "package/tool.py")
    main = script("from .tool import helper\nprint('main', helper.value)\n", "package/__main__.py")
    script("value = 8\n", "package/helper.py")
    for name in ("package.tool", "package"):
        status, output, errors = run(name, module=True, cwd=main.parents[1])
        wanted = python("-m", name, cwd=main.parents[1])
        assert (status, output) == wanted[:2]
        # Python shows how runpy got there; we leave out both its frames and ours.
        assert errors.splitlines()[-3:] == [line for line in wanted[2].splitlines() if "runpy" not in line][-3:]


def test_the_scripts_own_modules_win(script: Writer, run: Runner) -> None:
    for name in ("engine", "app", "resources", "tests", "packaging"):
        script(f"name = 'my {name}'\n", f"{name}.py")
    path = script("import engine, app, resources, tests, packaging\nprint(engine.name, app.name, packaging.name)\n")
    assert run(path) == (0, "my engine my app my packaging\n", "")


def test_torch_is_the_engines(script: Writer, run: Runner) -> None:
    script("raise RuntimeError('this torch must not win')\n", "torch.py")
    path = script(
        """
        import torch
        import torch.cuda as cuda
        import stridescope.engine.torch

        print(torch is stridescope.engine.torch, cuda is torch.cuda is stridescope.engine.torch.cuda)
        print(torch.__spec__.name)
        try:
            import torch.no_such_thing
        except ModuleNotFoundError as error:
            print(error)
        """
    )
    assert run(path) == (
        0,
        "True True\nstridescope.engine.torch\nNo module named 'torch.no_such_thing'\n",
        "",
    )


def test_a_notebook_runs_cell_after_cell(script: Writer, run: Runner) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "x = 20\n", "x + 1"]},
        {"cell_type": "code", "source": "!pip install nothing\nif x:\n    !ls\nx;"},
        {"cell_type": "code", "source": ["def f():\n", "    return (\n", "        1 / 0)\n", "f()"]},
    ]
    path = script(json.dumps({"cells": cells, "nbformat": 4}), "lecture.ipynb")
    status, output, errors = run(path)
    assert (status, output) == (1, "21\n")
    assert "ZeroDivisionError: division by zero" in errors and "1 / 0)" in errors and str(path) in errors


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.py", None, "can't open file"),
        ("broken.ipynb", b"{", "is not a notebook"),
        ("list.ipynb", b"[]", "is not a notebook: it has no cells"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(
    name: str, content: bytes | None, message: str, script: Writer, tmp_path: pathlib.Path, python: Runner
) -> None:
    path = script(content, name) if content is not None else tmp_path / name
    command = "import sys; from stridescope.engine.worker import launch\ntry: launch.run_script(sys.argv[1])\n"
    status, output, _ = python("-P", "-c", command + "except launch.LaunchError as error: print(error)", path)
    assert status == 0 and message in output and output.count("\n") == 1


def test_output_in_another_encoding_is_passed_on_and_recorded(
    script: Writer, tmp_path: pathlib.Path, python: Runner, record: Runner
) -> None:
    path = script("print('\\xe9\\xdf', ascii('\\xe9'))\n")
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1:replace"}
    command = [str(path), "one"]
    assert record(*command, env=environment, text_encoding="latin-1") == python(
        *command, env=environment, text_encoding="latin-1"
    )
    with Recording.open(tmp_path / "recorded.stride") as recording:
        assert recording.output(recording.steps - 1)[0].text == "\xe9\xdf '\\xe9'\n"


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_linked_script_imports_from_where_it_stands(
    script: Writer, tmp_path: pathlib.Path, python: Runner, run: Runner
) -> None:
    path = script("import helper\nprint(__file__, helper.value)\n", "real/user.py")
    script("value = 9\n", "real/helper.py")
    link = tmp_path / "link.py"
    link.symlink_to(path)
    assert run(link) == python(link) == (0, f"{link} 9\n", "")


def test_an_ops_error_shows_nothing_of_what_it_arose_from_inside_the_engine(script: Writer, run: Runner) -> None:
    source = """
    import torch, traceback
    try:
        torch.ones(2) + torch.ones(3)
    except RuntimeError as error:
        print(error.__context__)
    try:
        1 / 0
    except ZeroDivisionError:
        torch.add(torch.ones(2), torch.ones(3))
    """
    status, out, errors = run(script(source))
    assert (status, out) == (1, "None\n") and "<op" not in errors and "broadcast together" not in errors
    assert errors.count("Traceback") == 2 and "ZeroDivisionError" in errors
