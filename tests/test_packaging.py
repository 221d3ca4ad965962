"""The package list, the top level and the set-up script: what a newcomer's first minutes depend on."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = ("app", "engine", "resources")
TOP_LEVEL = {"pyproject.toml", "app", "engine", "resources", "tests", "packaging", "README.md", "LICENSE"}
SETUP_FILES = sorted((ROOT / "packaging").glob("*.py"))


def tracked() -> list[pathlib.PurePosixPath]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of committed files")
    return [pathlib.PurePosixPath(line) for line in listed.stdout.splitlines()]


def test_package_list_equals_the_folders() -> None:
    folders = {path.parent.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("__init__.py")}
    found = sorted(".".join(["stridescope", *folder.parts]) for folder in folders)
    assert found == PROJECT["tool"]["setuptools"]["packages"], "keep [tool.setuptools] packages sorted and complete"


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_lies_in_a_package(room: str) -> None:
    stray = [path for path in (ROOT / room).rglob("*.py") if not (path.parent / "__init__.py").exists()]
    assert all("lessons" in path.parts for path in stray), stray


@pytest.mark.parametrize("folder", ["tests", "packaging"])
def test_no_package_where_it_would_shadow_others(folder: str) -> None:
    assert not list((ROOT / folder).rglob("__init__.py"))


def test_top_level_holds_only_its_names() -> None:
    names = {path.parts[0] for path in tracked()}
    assert {name for name in names if not name.startswith(".")} <= TOP_LEVEL


def test_the_command_is_installed() -> None:
    scripts = importlib.metadata.entry_points(group="console_scripts", name="stridescope")
    assert [script.value for script in scripts] == ["stridescope.app.cli:main"]


@pytest.mark.parametrize("path", SETUP_FILES, ids=lambda path: path.name)
def test_set_up_needs_nothing_but_an_old_python(path: pathlib.Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports}
    beside = {path.stem for path in SETUP_FILES}
    assert {str(module).partition(".")[0] for module in modules} <= sys.stdlib_module_names | beside


def dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What the set-up script does on a machine without a display."""
    command = [sys.executable, str(ROOT / "packaging" / "dev.py"), *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)


def test_doctor_names_this_machine() -> None:
    done = dev("doctor")
    assert done.returncode in (0, 1)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        "Python",
        "environment",
        "Qt libraries",
        "display",
        "Xvfb",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
def test_run_without_a_display_leaves_a_screenshot(tmp_path: pathlib.Path) -> None:
    if "(ready)" not in dev("doctor").stdout:
        pytest.skip("this environment was not made by packaging/dev.py, which would renew it now")
    script = tmp_path / "mine.py"
    script.write_text("import torch\nx = torch.ones(2, 3)\nprint(x.t().stride())\n")
    done = dev("run", str(script))
    assert done.returncode == 0, done.stderr
    picture = pathlib.Path(done.stdout.splitlines()[-1].removeprefix("Screenshot: "))
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_wrong_command_prints_the_right_ones() -> None:
    done = dev("frobnicate")
    assert done.returncode == 2
    assert "run [SCRIPT]" in done.stdout
    assert "Traceback" not in done.stderr
