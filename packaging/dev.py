"""The one door for people who have just cloned Stridescope: it sets everything up, then does what was asked.

usage: python3 packaging/dev.py COMMAND [ARGUMENTS]
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable

import environment
import system
import typelinks

ROOT = environment.ROOT
LESSON = ROOT / "resources" / "lessons" / "strides_and_grads.py"
SCREENSHOT = ROOT / "build" / "screenshot.png"
PACKAGING_FILES = ["packaging/dev.py", "packaging/environment.py", "packaging/system.py", "packaging/typelinks.py"]

product = environment.Environment(".venv", ["--editable", ".[test]"])
judge = environment.Environment(".venv-torch", ["torch==2.13.0", "numpy>=2.3"], ("3.11", *environment.PREFERRED))
"""Real PyTorch, in an environment of its own: no process ever holds it and the engine."""


def run(arguments: list[str]) -> int:
    """Open the window on SCRIPT, or on the bundled lesson; with no display, take a screenshot of it off screen."""
    script = str(pathlib.Path(arguments[0]).resolve() if arguments else LESSON)
    product.ensure()
    system.ensure_qt_libraries(window=system.has_display())
    if system.has_display():
        return subprocess.call([str(product.program("stridescope")), script])
    return _screenshot(script)


def _screenshot(script: str) -> int:
    """The window's off-screen twin: ``app/main.py`` steps through the script and saves a picture of the window."""
    SCREENSHOT.parent.mkdir(exist_ok=True)
    SCREENSHOT.unlink(missing_ok=True)
    print("There is no display here, so the window is rendered off screen.", flush=True)
    command = [str(product.python), "-P", "-m", "stridescope.app.main", "--offscreen-demo", str(SCREENSHOT), script]
    status = subprocess.call(command, env={**os.environ, "QT_QPA_PLATFORM": "offscreen"})
    if SCREENSHOT.is_file():
        print(f"Screenshot: {SCREENSHOT}")
    return status


def test(arguments: list[str]) -> int:
    """Check style and types, then run every test; with ARGUMENTS run only pytest, with them."""
    _ready_for_tests()
    checks = [] if arguments else _lint_steps()
    return _all_pass([*checks, [str(product.python), "-P", "-m", "pytest", *arguments]])


def lint(arguments: list[str]) -> int:
    """Check style and types only."""
    product.ensure()
    return _all_pass(_lint_steps())


def compare(arguments: list[str]) -> int:
    """Run the tests that ask a real PyTorch 2.13, installed beside the project, for its answers."""
    _ready_for_tests()
    judge.ensure()
    os.environ["STRIDESCOPE_TORCH_PYTHON"] = str(judge.python)
    return _all_pass([[str(product.python), "-P", "-m", "pytest", *(arguments or ["tests/against_torch"])]])


def setup(arguments: list[str]) -> int:
    """Make the environment and stop there; naming a PYTHON makes it afresh with that one."""
    product.ensure(arguments[0] if arguments else None)
    print(f"Ready: {product.python}")
    return 0


def doctor(arguments: list[str]) -> int:
    """Say what this machine has and what it lacks; change nothing."""
    interpreter = environment.find_interpreter()
    missing = system.missing_libraries(window=True)
    packages = system.apt_line(sorted(missing.values()))
    print(f"Python:        {interpreter.version} ({interpreter.path})")
    print(f"environment:   {product.folder} ({'ready' if product.ready else 'made or renewed by the next command'})")
    print(f"Qt libraries:  {'lacks ' + ', '.join(sorted(missing)) + ': ' + packages if missing else 'all here'}")
    print(f"display:       {'yes' if system.has_display() else 'none: run takes a screenshot instead'}")
    print(f"Xvfb:          {shutil.which('Xvfb') or 'none: the test of a real window is skipped without it'}")
    return 1 if missing else 0


def _ready_for_tests() -> None:
    product.ensure()
    system.ensure_test_screen()
    system.ensure_qt_libraries(window=shutil.which("Xvfb") is not None)


def _lint_steps() -> list[list[str]]:
    ruff, mypy = str(product.program("ruff")), [str(product.python), "-P", "-m", "mypy"]
    style = [[ruff, "check"], [ruff, "format", "--check"]]
    if product.version == "3.11":
        print("Types are checked under Python 3.12 and newer: the NumPy that 3.11 is left with declares other ones.")
        return style
    typelinks.lay_links()
    return [*style, mypy, [*mypy, *PACKAGING_FILES]]


def _all_pass(steps: list[list[str]]) -> int:
    """Run every step, so that one run shows all that is wrong, and name those that failed."""
    failed = []
    for step in steps:
        shown = " ".join([pathlib.Path(step[0]).name, *step[1:]])
        print(f"\n$ {shown}", flush=True)
        if subprocess.call(step, cwd=ROOT):
            failed.append(shown)
    for shown in failed:
        print(f"FAILED: {shown}", file=sys.stderr)
    return 1 if failed else 0


COMMANDS: list[tuple[Callable[[list[str]], int], str]] = [
    (run, "[SCRIPT]"),
    (test, "[PYTEST ARGUMENTS]"),
    (lint, ""),
    (compare, "[PYTEST ARGUMENTS]"),
    (setup, "[PYTHON]"),
    (doctor, ""),
]


def usage() -> str:
    """The help text, from the commands' own docstrings."""
    rows = [f"  {command.__name__} {takes}".ljust(28) + (command.__doc__ or "") for command, takes in COMMANDS]
    return "\n".join([(__doc__ or "").strip(), "", *rows])


def main(arguments: list[str]) -> int:
    """Carry out one command; what the person must mend is one message, not a traceback."""
    named = {command.__name__: command for command, _ in COMMANDS}
    if not arguments or arguments[0] not in named:
        print(usage())
        return 0 if arguments in (["-h"], ["--help"]) else 2
    try:
        return named[arguments[0]](arguments[1:])
    except system.SetupError as error:
        print(f"dev.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
