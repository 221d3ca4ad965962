"""Virtual environments: find a Python to make one with, make it, and install into it only when something changed."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import NamedTuple

import system

ROOT = pathlib.Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
PREFERRED = ("3.12", "3.13", "3.14", "3.11")
"""Python versions, best first. 3.11 is last because PySide6, NumPy and networkx leave it behind."""

PROBE = """
import importlib.util, json, sys, sysconfig
print(json.dumps({
    "path": getattr(sys, "_base_executable", None) or sys.executable,
    "version": list(sys.version_info[:2]),
    "has_venv": importlib.util.find_spec("ensurepip") is not None,
    "usable": sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED"),
}))
"""


class Interpreter(NamedTuple):
    """A Python found on this machine."""

    path: str
    version: str
    has_venv: bool


def find_interpreter(preferred: tuple[str, ...] = PREFERRED) -> Interpreter:
    """The best Python of this machine for an environment, by the order of ``preferred``."""
    found = [interpreter for command in _commands() if (interpreter := probe(command))]
    if not found:
        raise system.SetupError(
            f"Stridescope needs Python {OLDEST[0]}.{OLDEST[1]} or newer (3.12 is best), and found none: this one is "
            f"{sys.version.split()[0]}. Install one from python.org or your system's packages, then try again."
        )
    return min(found, key=lambda each: preferred.index(each.version) if each.version in preferred else len(preferred))


def _commands() -> list[list[str]]:
    """Every way to call a Python here: the running one, those on PATH, pyenv's, and the Windows launcher's."""
    names = [f"python{version}" for version in PREFERRED] + ["python3", "python"]
    on_path = [path for name in names if (path := shutil.which(name))]
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    from_pyenv = [*pyenv.glob("versions/3.*/bin/python"), *pyenv.glob("pyenv-win/versions/3.*/python.exe")]
    launcher = shutil.which("py") if sys.platform == "win32" else None
    commands = [[path] for path in (sys.executable, *on_path, *map(str, from_pyenv))]
    return commands + [[launcher, f"-{version}"] for version in PREFERRED if launcher]


def probe(command: list[str]) -> Interpreter | None:
    """What a Python says of itself; None for one that does not run, is too old, or that wheels are not made for."""
    try:
        done = subprocess.run([*command, "-c", PROBE], capture_output=True, text=True, timeout=30)
        answer = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if tuple(answer["version"]) < OLDEST or not answer["usable"]:
        return None
    return Interpreter(answer["path"], "{}.{}".format(*answer["version"]), answer["has_venv"])


class Environment:
    """One virtual environment in the checkout, and the pip requirements that it holds."""

    def __init__(self, name: str, requirements: list[str], preferred: tuple[str, ...] = PREFERRED) -> None:
        """Name the environment's folder; nothing is made before :meth:`ensure`."""
        self.folder = ROOT / name
        self.requirements = requirements
        self.preferred = preferred
        self.stamp = self.folder / "stridescope-setup.txt"

    @property
    def python(self) -> pathlib.Path:
        """The environment's interpreter."""
        return self.program("python")

    def program(self, name: str) -> pathlib.Path:
        """A program that pip installed into the environment."""
        if sys.platform == "win32":
            return self.folder / "Scripts" / f"{name}.exe"
        return self.folder / "bin" / name

    @property
    def version(self) -> str:
        """The Python version of the environment, such as "3.12"; empty before it is made."""
        interpreter = probe([str(self.python)])
        return interpreter.version if interpreter else ""

    @property
    def ready(self) -> bool:
        """Whether the environment was made here and installed from these very requirements."""
        return self.stamp.is_file() and self.stamp.read_text() == self._digest() and self.python.exists()

    def ensure(self, python: str | None = None) -> None:
        """Make and fill the environment unless it stands ready; ``python`` forces a fresh one made with it."""
        if python is None and self.ready:
            return
        if python or not self.version:
            self._create(python)
        print(f"Installing {' '.join(self.requirements)} into {self.folder.name} (minutes, the first time)", flush=True)
        command = [str(self.python), "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*command, *self.requirements], cwd=ROOT).returncode:
            raise system.SetupError(f"pip could not install {' '.join(self.requirements)}; its words stand above.")
        self.stamp.write_text(self._digest())

    def _create(self, python: str | None) -> None:
        interpreter = probe([python]) if python else find_interpreter(self.preferred)
        if interpreter is None:
            raise system.SetupError(f"{python} is not a Python {OLDEST[0]}.{OLDEST[1]} or newer.")
        if not interpreter.has_venv:
            interpreter = _with_venv(interpreter)
        print(f"Making {self.folder.name} with Python {interpreter.version}", flush=True)
        if subprocess.run([interpreter.path, "-m", "venv", "--clear", str(self.folder)]).returncode:
            raise system.SetupError(f"{interpreter.path} could not make {self.folder}; its words stand above.")

    def _digest(self) -> str:
        """What an installation depends on: the requirements, where the checkout lies, and pyproject.toml."""
        parts = [*self.requirements, str(ROOT), (ROOT / "pyproject.toml").read_text(encoding="utf-8")]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _with_venv(interpreter: Interpreter) -> Interpreter:
    """The same Python once Debian's separate venv package is there."""
    package = f"python{interpreter.version}-venv"
    if not system.can_install():
        raise system.SetupError(f"{interpreter.path} lacks the venv module: sudo {system.apt_line([package])}")
    system.install_packages([package])
    return interpreter._replace(has_venv=True)
