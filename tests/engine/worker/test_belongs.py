"""Which files are the user's: theirs wherever they stand, never the libraries' nor ours."""

from __future__ import annotations

import json
import pathlib
import statistics
import sysconfig
import textwrap
from collections.abc import Callable

import numpy
import pytest

import stridescope.engine.tensor
import stridescope.engine.torch
from stridescope.engine.events import SourceSeen
from stridescope.engine.recording.reader import Recording
from stridescope.engine.worker.belongs import Belongs


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/somewhere/project/user.py", True),
        ("/somewhere/project/inside/helper.py", True),
        ("/somewhere/else/module.py", True),
        ("/somewhere/project/.venv/lib/python3.12/site-packages/thing/__init__.py", False),
        (json.__file__, False),
        (numpy.__file__, False),
        (stridescope.engine.tensor.__file__, False),
        (sysconfig.get_paths()["stdlib"] + "/anything.py", False),
        ("<string>", False),
        ("<frozen importlib._bootstrap>", False),
    ],
)
def test_a_file(path: str, wanted: bool) -> None:
    assert Belongs("/somewhere/project/user.py", "/somewhere/project").owns(path) is wanted


def test_a_program_that_stands_among_libraries_is_the_users() -> None:
    folder = sysconfig.get_paths()["purelib"] + "/stridescope/resources/lessons"
    belongs = Belongs(f"{folder}/views.py", folder)
    assert belongs.owns(f"{folder}/views.py") and belongs.owns(f"{folder}/helper.py")
    assert not belongs.owns(numpy.__file__)


def test_the_functions_of_packages_can_be_stepped_into() -> None:
    belongs = Belongs(
        "/somewhere/project/user.py", "/somewhere/project", ("json", "torch", "textwrap", "no_such_package")
    )
    linear = stridescope.engine.torch.nn.Linear
    assert belongs(json.loads.__code__) and belongs(linear.forward.__code__) and belongs(textwrap.dedent.__code__)
    assert not belongs(statistics.mean.__code__)
    assert not belongs(stridescope.engine.tensor.bump_version.__code__)
    assert not belongs(compile("x = 1", json.__file__, "exec"))  # what runs while it is imported


def test_the_recording_names_and_keeps_the_users_files(
    script: Callable[..., pathlib.Path],
    record: Callable[..., tuple[int, str, str]],
    tmp_path: pathlib.Path,
) -> None:
    helper = script("def f(x):\n    return x\n", "你好 helper.py")
    source = "import importlib, json\nhelper = importlib.import_module('你好 helper')\nhelper.f(json.loads('1'))\n"
    path = script(source)
    assert record(path)[0] == 0
    with Recording.open(tmp_path / "recorded.stride") as recording:
        events = recording.events(0, recording.steps - 1)
        assert [event.path for event in events if isinstance(event, SourceSeen)] == [str(path), str(helper)]
        assert recording.sources[1].text == source
