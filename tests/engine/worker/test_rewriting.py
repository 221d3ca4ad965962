"""Probes in the user's code tell what ``sys.monitoring`` tells, and the script does not notice them.

Python before 3.12 is watched so; here every version that the rewriting knows is.
"""

from __future__ import annotations

import pathlib
import random
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine.events import (
    ExceptionRaised,
    FrameEntered,
    FrameLeft,
    LineReached,
    NameBound,
    NameUnbound,
    RecordingCut,
)
from stridescope.engine.recording.reader import Recording

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts" / "as_python"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))
# Code that the script itself copies is not watched by probes; whose turn it is and where Python's stack ends
# differs from run to run.
OTHERWISE = {"code_objects", "threads", "deep_recursion"}
TOLD = ExceptionRaised | FrameEntered | FrameLeft | LineReached | NameBound | NameUnbound
RECORD = """import sys
from stridescope.engine.worker import launch, probing, recorded, watch
recorded.watch = getattr(probing if sys.argv[1] == "RewriteWatch" else watch, sys.argv[1])
launch.leave(recorded.record_script(sys.argv[3], sys.argv[4:], sys.argv[2]))
"""
Outcome = tuple[int, str, str]
Writer = Callable[..., pathlib.Path]

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 13), reason="there sys.monitoring watches, and code is another")
monitored = pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no sys.monitoring to agree with")


def outcome(*command: object) -> Outcome:
    """Run Python with these arguments."""
    line = [sys.executable, *map(str, command)]
    done = subprocess.run(line, capture_output=True, input=b"Ada\none\ntwo\n", timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def watched(how: str, script: pathlib.Path, folder: pathlib.Path) -> tuple[Outcome, list[Any]]:
    """Record a script, watched one way; return its outcome, and the events in order without what counts steps."""
    path = folder / f"{how}.stride"
    done = outcome("-P", "-c", RECORD, how, path, script, "one", "--two")
    with Recording.open(path) as recording:
        events = recording.events(0, recording.steps - 1)
    assert not [event for event in events if isinstance(event, RecordingCut)]
    return done, [_told(event) for event in events if isinstance(event, TOLD)]


def _told(event: Any) -> tuple[object, ...]:
    names = [name for name in type(event).__dataclass_fields__ if name not in ("time", "thread", "step")]
    return type(event).__name__, *(getattr(event, name) for name in names)


def uncounted(errors: str) -> str:
    """Leave out how deep a recursion went."""
    return re.sub(r"(repeated|maximum recursion depth exceeded).*", r"\1", errors)


@pytest.mark.parametrize("name", NAMES)
def test_a_rewritten_program_does_as_python_does(name: str, tmp_path: pathlib.Path) -> None:
    script = SCRIPTS / f"{name}.py"
    status, output, errors = outcome(script, "one", "--two")
    done, events = watched("RewriteWatch", script, tmp_path)
    assert done[:2] == (status, output) and uncounted(done[2]) == uncounted(errors)
    assert events


def test_a_program_that_traces_and_profiles_itself_sees_its_own_calls_only(tmp_path: pathlib.Path) -> None:
    script = SCRIPTS.parent / "hardship" / "traces_itself.py"
    done, events = watched("RewriteWatch", script, tmp_path)
    assert done == outcome(script) and done[0] == 0
    lines = [event[3] for event in events if event[0] == "LineReached" and event[1] == 1]
    assert lines[-1] == 42  # recorded again once it has ended that


@monitored
@pytest.mark.parametrize("name", [name for name in NAMES if name not in OTHERWISE])
def test_probes_tell_what_monitoring_tells(name: str, tmp_path: pathlib.Path) -> None:
    script = SCRIPTS / f"{name}.py"
    assert watched("RewriteWatch", script, tmp_path)[1] == watched("MonitoringWatch", script, tmp_path)[1]


class Programs:
    """Writes random programs that end: every statement nested in every other."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0

    def program(self) -> str:
        """Return a program: functions that call those before them, then calls of each."""
        lines = ["import contextlib, sys", "def tick(*given):", "    return len(given) % 3", ""]
        kinds = ["def", "gen", "async"]
        for number in range(4):
            kind = kinds[number % 3] if number < 3 else self._random.choice(kinds)
            lines += [f"{'async ' * (kind == 'async')}def f{number}(n, out):", "    x = n"]
            lines += _indented(self._block(3, kind, number, loop=False))
            lines += ["    yield x" if kind == "gen" else "    return x", ""]
            lines += self._calls(number, kind)
        return "\n".join(lines) + "\n"

    def _calls(self, number: int, kind: str) -> list[str]:
        run = {"def": "f{}(i, out)", "gen": "list(f{}(i, out))", "async": "f{}(i, out).send(None)"}[kind].format(number)
        return [
            "for i in range(4):",
            "    out = []",
            f"    try: out.append({run})",
            "    except BaseException as error: print(type(error).__name__, error.args, error.__traceback__.tb_lineno)",
            "    print(out, sys.exc_info())",
        ]

    def _block(self, depth: int, kind: str, number: int, loop: bool) -> list[str]:
        count = self._random.randint(1, 3)
        return [line for _ in range(count) for line in self._statement(depth, kind, number, loop)]

    def _statement(self, depth: int, kind: str, number: int, loop: bool) -> list[str]:
        choose = self._random.choice
        simple = ["x += 1", "out.append(x)", "x = tick(x,\n  n,\n  x)", "y = [i for i in range(x % 3) if i]", "pass"]
        simple += ["z = (lambda v: v + x)(1)", "if x % 2: x += 2", "while x > 5: x -= 3", "for i in range(2): x += i"]
        simple += ["assert x != 4, x", "w = {i: x for i in range(2)}", "x = 1 if x > 3 else 2", "y = x; del y"]
        simple += ["if x == 3: raise ValueError(x)", "x = 6 // (x % 4)", "[][x % 2:]", "out[x].append(1)"]
        simple += ["if n == 2: return x"] if kind != "gen" else ["if n == 2: return", "yield x", "got = yield n"]
        simple += ["if x % 3 == 1: continue", "if x > 4: break"] if loop else []
        simple += [
            "try: x = 1 // (x - 1)\nexcept ZeroDivisionError: x = 3",
            "with contextlib.suppress(Exception): 1 / 0",
        ]
        if not depth or self._random.random() < 0.4:
            return choose(simple).split("\n")
        return getattr(
            self, choose(["_if", "_for", "_while", "_try", "_finally", "_with", "_match", "_def", "_class"])
        )(depth - 1, kind, number, loop)

    def _if(self, *where: Any) -> list[str]:
        last = ["else:", *_indented(self._block(*where))] if self._random.random() < 0.5 else []
        middle = ["elif x > 2:", *_indented(self._block(*where))] if self._random.random() < 0.5 else []
        return ["if x % 2:", *_indented(self._block(*where)), *middle, *last]

    def _for(self, depth: int, kind: str, number: int, loop: bool) -> list[str]:
        last = ["else:", *_indented(self._block(depth, kind, number, loop))] if self._random.random() < 0.3 else []
        return [f"for a{depth} in range(3):", *_indented(self._block(depth, kind, number, True)), *last]

    def _while(self, depth: int, kind: str, number: int, loop: bool) -> list[str]:
        test = self._random.choice(["{} < 3", "{} < 3 and x", "True"])
        self._names += 1
        name = f"k{self._names}"
        ends = [f"{name} += 1", f"if {name} > 3: break"]
        body = [*ends, *self._block(depth, kind, number, True)]
        return [f"{name} = 0", f"while {test.format(name)}:", *_indented(body)]

    def _try(self, *where: Any) -> list[str]:
        kinds = self._random.choice(["ValueError", "(ValueError, TypeError) as e", "Exception as e", "IndexError"])
        body, handler = self._block(*where), self._block(*where)
        again = ["raise"] if self._random.random() < 0.2 else []
        last = ["else:", *_indented(self._block(*where))] if self._random.random() < 0.3 else []
        return ["try:", *_indented(body), f"except {kinds}:", *_indented([*handler, *again]), *last]

    def _finally(self, *where: Any) -> list[str]:
        body = self._block(*where)
        inner = ["x = x + 1", *self._statement(0, where[1], where[2], False)]
        return ["try:", *_indented(body), "finally:", *_indented(inner)]

    def _with(self, *where: Any) -> list[str]:
        kind = self._random.choice(["ValueError", "ZeroDivisionError", "KeyError, IndexError"])
        return [f"with contextlib.suppress({kind}) as s:", *_indented(self._block(*where))]

    def _match(self, *where: Any) -> list[str]:
        first, second = self._block(*where), self._block(*where)
        cases = ["case [0, _]:", *_indented(first), "case (1, y) if y:", *_indented(second)]
        return ["match (x % 3, n):", *_indented([*cases, "case _: x += 1"])]

    def _def(self, depth: int, kind: str, number: int, loop: bool) -> list[str]:
        self._names += 1
        head = [f"def g{self._names}(x=x, n=n):", *_indented([*self._block(depth, "def", number, False), "return x"])]
        return [*head, f"x = g{self._names}() or 1"]

    def _class(self, *where: Any) -> list[str]:
        return ["class C:", "    x = 1", "    for i in range(2):", "        x += i", "x = C.x"]


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for each in lines for line in each.split("\n")]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int, script: Writer, tmp_path: pathlib.Path) -> None:
    path = script(Programs(seed).program())
    done, events = watched("RewriteWatch", path, tmp_path)
    assert done == outcome(path) and events
    if sys.version_info >= (3, 12):
        assert events == watched("MonitoringWatch", path, tmp_path)[1]


def test_modules_of_the_script_are_watched_and_cached_as_python_caches_them(
    script: Writer, tmp_path: pathlib.Path
) -> None:
    script("from . import inner\nvalue = inner.double(4)\n", "package/__init__.py")
    script("def double(x):\n    y = x * 2\n    return y\n", "package/inner.py")
    path = script("import package\nprint(package.value, package.inner.__cached__ is not None)\n")
    for _ in range(2):  # compiled, then read from the cache
        done, events = watched("RewriteWatch", path, tmp_path)
        assert done == (0, "8 True\n", "")
        assert [event[:1] + event[3:] for event in events if event[0] == "LineReached"].count(("LineReached", 2)) == 3
    assert outcome(path) == (0, "8 True\n", "")  # what lies in the cache is Python's own


def test_what_a_script_runs_by_its_path_is_watched(script: Writer, tmp_path: pathlib.Path) -> None:
    script("x: int = 1\nprint(__annotations__)\ny = x + 1\n", "other.py")
    path = script("import pathlib, runpy\nprint(runpy.run_path(pathlib.Path(__file__).with_name('other.py'))['y'])\n")
    done, events = watched("RewriteWatch", path, tmp_path)
    assert done == outcome(path)
    assert [event[3] for event in events if event[0] == "LineReached" and event[2] == 2] == [1, 2, 3]


def test_a_fault_in_an_imported_module_is_shown_as_python_shows_it(script: Writer, tmp_path: pathlib.Path) -> None:
    script("value = (1,\n", "broken.py")
    script("def fail():\n    return 1 / 0\nfail()\n", "failing.py")
    path = script(
        "try:\n    import broken\nexcept SyntaxError:\n    import traceback; traceback.print_exc()\nimport failing\n"
    )
    assert watched("RewriteWatch", path, tmp_path)[0] == outcome(path)


def test_a_loop_that_is_rationed_is_recorded_again_where_something_follows(
    script: Writer, tmp_path: pathlib.Path
) -> None:
    source = """
        def work(n):
            total = 0
            for i in range(n):
                total += i
            last = total
            return last
        print(work(50_000))
    """
    _, events = watched("RewriteWatch", script(textwrap.dedent(source)), tmp_path)
    lines = [event[3] for event in events if event[0] == "LineReached"]
    assert len(lines) < 10_000 and lines[-2:] == [6, 7]
    assert [event[4] for event in events if event[0] == "NameBound" and event[2] == "last"] == [str(sum(range(50_000)))]


def test_what_compiles_bytecode_gets_that_of_the_file(script: Writer, tmp_path: pathlib.Path) -> None:
    """A stand-in for numba, which asks its own function for the code that it is to compile."""
    script("", "numba/__init__.py")
    script("", "numba/core/__init__.py")
    script("def get_code_object(function):\n    return function.__code__\n", "numba/core/bytecode.py")
    path = script(
        """
        from numba.core.bytecode import get_code_object

        def total(n):
            t = 0
            for i in range(n):
                t += i
            return t

        print(total(3), get_code_object(total).co_consts, get_code_object(total).co_code)
        """
    )
    assert watched("RewriteWatch", path, tmp_path)[0] == outcome(path)
