"""The command line, as a shell sees it: output, errors and exit status."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.app.cli import COMMANDS, main
from stridescope.engine.commands_table import table, text_of
from stridescope.engine.recording.reader import Recording

Outcome = tuple[int, str, str]
Shell = Callable[..., Outcome]

PLAIN = """\
import sys
print(sys.argv[1:], __name__, sys.path[0].endswith("user"))
print("to stderr", file=sys.stderr)
"""

TENSORS = """\
import torch

class Box:
    def __init__(self, weight):
        self.weight = weight

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 2
z = (y * y).sum()
z.backward()
box = Box(x)
net = torch.nn.Sequential(torch.nn.Linear(3, 1)).eval()
print(x.grad)
"""


@pytest.fixture
def user(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder of a user's own."""
    (tmp_path / "user").mkdir()
    return tmp_path / "user"


@pytest.fixture
def shell(user: pathlib.Path) -> Shell:
    """Run the command line in the user's folder."""

    def run(*words: object, stdout: Any = subprocess.PIPE) -> Outcome:
        command = [sys.executable, "-P", "-m", "stridescope.app.cli", *map(str, words)]
        done = subprocess.run(
            command, cwd=user, stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120
        )
        return done.returncode, (done.stdout or b"").decode(), done.stderr.decode()

    return run


@pytest.fixture
def python(user: pathlib.Path) -> Shell:
    """Run Python itself in the user's folder."""

    def run(*words: object) -> Outcome:
        done = subprocess.run(
            [sys.executable, *map(str, words)], cwd=user, capture_output=True, stdin=subprocess.DEVNULL, timeout=120
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


@pytest.fixture
def here(user: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run the command line in this process, for the commands that run no script: a process each takes a second."""
    monkeypatch.chdir(user)

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


# ---- run and record ----------------------------------------------------------------------------------------------

PROGRAMS = {
    "plain": PLAIN,
    "status": "import sys\nsys.exit(7)\n",
    "exit_text": "import sys\nsys.exit('no more')\n",
    "error": "def inner():\n    return 1 / 0\n\n\ndef outer():\n    inner()\n\n\nouter()\n",
    "syntax": "x = (\nprint(1)\n",
    "own_module": "import engine\nimport app\nprint(engine.name, app.name)\n",
    "handler": "import atexit\natexit.register(print, 'bye')\nprint('hello')\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_run_and_record_do_what_python_does(name: str, user: pathlib.Path, shell: Shell, python: Shell) -> None:
    (user / "script.py").write_text(PROGRAMS[name])
    for module in ("engine", "app"):
        (user / f"{module}.py").write_text(f"name = 'the user\\'s {module}'\n")
    expected = python("script.py", "-x", "--step", "1")
    assert shell("run", "script.py", "-x", "--step", "1") == expected
    assert shell("record", "script.py", "-o", "run.stride", "--", "-x", "--step", "1") == expected
    with Recording.open(user / "run.stride") as recording:
        assert recording.meta["status"] == expected[0] and recording.meta["argv"] == ["-x", "--step", "1"]
        assert [pathlib.Path(source.path).name for source in recording.sources.values()][:1] == ["script.py"]
        assert not any("cli" in source.path for source in recording.sources.values())


def test_run_a_module(user: pathlib.Path, shell: Shell, python: Shell) -> None:
    (user / "package").mkdir()
    (user / "package" / "tool.py").write_text("import sys\nprint(sys.argv[1:], __name__, __package__)\n")
    assert shell("run", "-m", "package.tool", "a") == python("-m", "package.tool", "a")


def test_run_gives_torch(user: pathlib.Path, shell: Shell) -> None:
    (user / "script.py").write_text(TENSORS)
    assert shell("run", "script.py") == (0, "tensor([ 8., 16., 24.])\n", "")


def test_the_device_is_chosen(user: pathlib.Path, shell: Shell) -> None:
    (user / "script.py").write_text("import torch\nprint(torch.cuda.is_available())\n")
    assert shell("run", "--device", "cpu", "script.py")[1] == "False\n"
    assert shell("run", "--device", "sim:1GiB", "script.py")[1] == "True\n"
    status, _, errors = shell("run", "--device", "tpu", "script.py")
    assert status == 2 and "tpu" in errors and errors.count("\n") == 1


@pytest.mark.parametrize("values", ["none", "summary", "small", "full"])
def test_values_are_kept_as_asked(values: str, user: pathlib.Path, shell: Shell) -> None:
    (user / "script.py").write_text("import torch\nx = torch.ones(3)\ny = torch.ones(40_000)\n")
    assert shell("record", "script.py", "-o", "run.stride", "--values", values)[0] == 0
    with Recording.open(user / "run.stride") as recording:
        storages = recording.state(int(recording.lines()[-1])).storages.values()
        small = next(storage for storage in storages if storage.nbytes == 12)
        kept = {"none": (False, False), "summary": (False, True), "small": (True, False), "full": (True, False)}[values]
        assert (small.values is not None, small.summary is not None) == kept


@pytest.mark.parametrize(
    ("words", "status", "fault"),
    [
        (["run"], 2, "SCRIPT"),
        (["record", "script.py"], 2, "-o"),
        (["inspect", "none.stride"], 1, "there is no file none.stride"),
        (["inspect", "script.py"], 1, "is not a Stridescope recording"),
        (["inspect", "."], 1, "is a folder"),
        (["ops", "frobnicate"], 1, "no op 'frobnicate'"),
        (["explain", "run.stride"], 2, "the command explain is not in Stridescope yet"),
        (["export", "run.stride", "-o", "a.gif"], 2, "the command export is not in Stridescope yet"),
        (["--nonsense"], 2, "--nonsense"),
    ],
)
def test_bad_use_is_one_clear_line(words: list[str], status: int, fault: str, user: pathlib.Path, here: Shell) -> None:
    (user / "script.py").write_text("print('ran')\n")
    code, output, errors = here(*words)
    assert (code, output) == (status, "") and fault in errors.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "status", "fault"),
    [
        (["run", "none.py"], 2, "none.py': No such file"),
        (["record", "none.py", "-o", "run.stride"], 2, "none.py': No such file"),
        (["record", "script.py", "-o", "script.py"], 1, "exists and is not a recording"),
        (["record", "script.py", "-o", "no/run.stride"], 1, "there is no folder"),
    ],
)
def test_a_script_that_cannot_run(words: list[str], status: int, fault: str, user: pathlib.Path, shell: Shell) -> None:
    (user / "script.py").write_text("print('ran')\n")
    code, output, errors = shell(*words)
    assert (code, output, errors.count("\n")) == (status, "", 1) and fault in errors
    assert (user / "script.py").read_text() == "print('ran')\n"


def test_every_command_is_listed_and_explains_itself(here: Shell) -> None:
    status, output, _ = here("--help")
    assert status == 0
    for command in COMMANDS:
        assert f"  {command.name} " in output
        assert here(command.name, "--help")[0] == 0


def test_devices(here: Shell) -> None:
    status, output, _ = here("devices")
    assert status == 0 and output.startswith("cpu:") and "simulated" in output


# ---- inspect -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A recording of TENSORS."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "script.py").write_text(TENSORS)
    command = [sys.executable, "-P", "-m", "stridescope.app.cli", "record", "script.py", "-o", "run.stride"]
    subprocess.run(command, cwd=folder, check=True, timeout=120, stdout=subprocess.DEVNULL)
    return folder / "run.stride"


@pytest.fixture
def inspect(recorded: pathlib.Path, here: Shell) -> Callable[..., Any]:
    """Return what inspect prints of the recording, as data; the table must be printed too."""

    def ask(what: str, *words: object) -> Any:
        status, output, errors = here("inspect", recorded, "--what", what, "--json", *words)
        assert (status, errors) == (0, "")
        assert here("inspect", recorded, "--what", what, *words)[0] == 0
        return json.loads(output)

    return ask


def test_inspect_tells_the_whole_story(inspect: Callable[..., Any]) -> None:
    facts = inspect("summary")
    assert facts["status"] == 0 and facts["ended"] == "yes" and facts["backward nodes"] == 4
    steps = inspect("steps")
    assert len(steps) == facts["steps"] and steps[0]["event"] == "SourceSeen"
    last_line = max(row["step"] for row in steps if row["event"] == "LineReached")

    tensors = {name: row for row in inspect("tensors", "--step", last_line) for name in row["names"]}
    assert (tensors["x"]["sizes"], tensors["x"]["requires_grad"]) == ([3], True)
    assert tensors["y"]["grad_fn"] == "MulBackward0" and tensors["x"]["grad"]
    storages = {row["id"]: row for row in inspect("storages", "--step", last_line)}
    assert storages[tensors["x"]["storage"]]["values"] == "0000803f0000004000004040"
    nodes = {row["name"] for row in inspect("graph", "--step", last_line)}
    assert {"MulBackward0", "SumBackward0", "AccumulateGrad"} <= nodes
    assert [row["name"] for row in inspect("backward")][0] == "SumBackward0"
    assert inspect("allocator") == []
    assert tensors["box.weight"]["id"] == tensors["x"]["id"]
    modules = inspect("modules", "--step", last_line)
    assert [(row["module"], row["kind"], row["training"], row["name"], row["role"]) for row in modules] == [
        ("net", "Sequential", False, None, "module"),
        ("net.0", "Linear", False, None, "module"),
        ("net.0", "Linear", False, "weight", "parameter"),
        ("net.0", "Linear", False, "bias", "parameter"),
    ]
    history = inspect("history:x", "--step", last_line)
    assert [row["event"] for row in history][0] == "TensorMade" and "GradAccumulated" in {r["event"] for r in history}


def test_inspect_an_earlier_step(inspect: Callable[..., Any]) -> None:
    steps = inspect("steps")
    second = next(row["step"] for row in steps if row["event"] == "LineReached" and row["fields"]["line"] == 8)
    assert [row["names"] for row in inspect("tensors", "--step", second)] == [["x"]]
    assert len(inspect("steps", "--step", second)) == second + 1
    assert inspect("steps", "--step", "-1") == steps  # as an index of Python
    assert inspect("steps", "--step", "-3") == steps[:-2]


def test_inspect_refuses_what_is_not_there(recorded: pathlib.Path, here: Shell) -> None:
    for words, fault in [
        (["--step", "99999"], "there is no step 99999"),
        (["--step", "-99999"], "there is no step -99999"),
        (["--what", "colours"], "nothing is called 'colours'"),
        (["--what", "history:nobody"], "no tensor is called 'nobody'"),
        (["--what", "history:planet:3"], "'planet' has no history"),
        (["--what", "history:4711"], "no tensor 4711"),
    ]:
        status, output, errors = here("inspect", recorded, *words)
        assert (status, output) == (2, "") and fault in errors and errors.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise there")
def test_a_closed_pipe_is_no_traceback(recorded: pathlib.Path, shell: Shell) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        _, _, errors = shell("inspect", recorded, "--what", "steps", stdout=writer)
    finally:
        os.close(writer)
    assert errors == ""


def test_record_into_libraries(shell: Shell, here: Shell, user: pathlib.Path) -> None:
    (user / "layer.py").write_text("import torch\ntorch.nn.Linear(2, 1)(torch.ones(1, 2)).sum().backward()\n")
    status, _, errors = shell("record", "--into", "torch", "layer.py", "-o", "layer.stride")
    assert (status, errors) == (0, "")
    status, output, _ = here("inspect", "layer.stride", "--what", "steps", "--json")
    called = {row["fields"]["function"] for row in json.loads(output) if row["event"] == "FrameEntered"}
    assert {"Linear.__init__", "Module.__call__", "Linear.forward"} <= called
    assert "RecordingCut" not in output
    status, output, errors = here("record", "--into", "no_such_package", "layer.py", "-o", "layer.stride")
    assert (status, output) == (2, "") and errors == "stridescope: there is no package 'no_such_package' to step into\n"


# ---- ops ---------------------------------------------------------------------------------------------------------


def test_ops_are_read_off_the_declarations(here: Shell) -> None:
    listed = json.loads(here("ops", "--json")[1])
    assert {"add.Tensor", "mul.Tensor"} <= {row["op"] for row in listed}
    (page,) = [row for row in json.loads(here("ops", "add", "--json")[1]) if row["op"] == "add.Tensor"]
    assert page["schema"].startswith("add.Tensor(Tensor self, Tensor other")
    assert page["grad_fn"] == "AddBackward0" and page["gradients"] == ["self", "other"]
    assert here("ops", "aten::add.Tensor")[1].startswith("op ")
    assert "did you mean" in here("ops", "ad")[2]


# ---- tables ------------------------------------------------------------------------------------------------------


def test_tables_line_up() -> None:
    rows = [{"id": 1, "name": "a"}, {"id": 22, "name": None}]
    assert table(rows) == "id  name\n 1  a\n22"
    assert table([]) == "(none)"


def test_values_as_text() -> None:
    assert [text_of(value) for value in (None, True, [2, 3], ("x", "y"), ((1, 0), (2, 0)), "a\nb")] == [
        "", "yes", "[2, 3]", "x, y", "(1, 0), (2, 0)", "a\\nb",
    ]  # fmt: skip
