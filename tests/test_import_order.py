"""Imports point one way: the order of the house as data, read off every module's source.

Imports inside functions count too. Those under ``if TYPE_CHECKING:`` do not: they never run.
"""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

CHAIN = [
    "events",
    "dtype",
    "layout",
    "printed",
    "device",
    "warn",
    "devices",
    "kernels",
    "storage",
    "announce",
    "tensor",
    "autograd",
    "dispatch",
    "ops",
    "torch",
    "torchvision",
    "torchviz",
    "worker",
]
"""Each may import those before it."""

ALLOWED: dict[str, set[str]] = {
    **{f"engine.{name}": {f"engine.{earlier}" for earlier in CHAIN[:place]} for place, name in enumerate(CHAIN)},
    "engine.recording": {"engine.events"},
    "engine.explain": {"engine.events", "engine.recording", "engine.devices"},
    "resources": set(),
    "app": {"engine.events", "engine.layout", "engine.printed", "engine.recording", "engine.explain"}
    | {"engine.worker.protocol", "engine.worker.client"}
    | {"resources"},
}
"""What each place may import besides itself; a module belongs to the longest name here that it begins with."""

ALLOWED["engine.worker"] |= {"engine.recording"}
ENGINE = {place for place in ALLOWED if place.startswith("engine.")}
COMMANDS = {f"engine.commands{part}" for part in ("", "_inspect", "_ops", "_replay", "_table")}
ALLOWED |= dict.fromkeys(COMMANDS, ENGINE | COMMANDS)
ALLOWED["app.cli"] = ALLOWED["app"] | {"app", *COMMANDS}

QT = {"PySide6", "shiboken6", "pyqtgraph"}


def module_name(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    module_name(path): path
    for room in ("app", "engine", "resources")
    for path in sorted((ROOT / room).rglob("*.py"))
    if "lessons" not in path.parts
}


def running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node of a tree but those that only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from running_nodes(child)


def imported(path: pathlib.Path) -> Iterator[str]:
    """The full name of everything that a file imports; ``from a import b`` gives ``a.b``."""
    for node in running_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def place_of(module: str) -> str:
    """The place whose rule a module follows."""
    places = [place for place in ALLOWED if module == place or module.startswith(f"{place}.")]
    return max(places, key=len, default="")


def may_import(importer: str, target: str) -> bool:
    """Whether a target lies in the importer's own place or in one that it may see."""
    own = place_of(importer)
    seen = {own, *ALLOWED[own]}
    return any(target == place or target.startswith(f"{place}.") for place in seen) or target in ("engine", "app")


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module: str) -> None:
    if module == "engine":
        assert list(imported(MODULES[module])) == ["os", "warnings"], (
            "engine/__init__.py only sets how NumPy will be loaded"
        )
        return
    assert place_of(module), f"give {module} its place in the order"
    ours = [name.removeprefix("stridescope.") for name in imported(MODULES[module]) if name.startswith("stridescope.")]
    assert [name for name in ours if not may_import(module, name)] == []


@pytest.mark.parametrize("module", MODULES)
def test_foreign_imports_stay_in_their_room(module: str) -> None:
    tops = {name.partition(".")[0] for name in imported(MODULES[module])}
    assert not tops & {"torch", "app", "engine", "resources"}, "write stridescope.…; real PyTorch is never imported"
    assert module.partition(".")[0] == "app" or not tops & QT, "Qt lives in app/ only"


SLOW_TO_LOAD = {"scipy", "PIL", "networkx", "pyqtgraph", "cupy"}


def test_a_first_op_does_not_wait_for_what_it_does_not_need() -> None:
    script = "import sys, stridescope.engine.torch as torch; torch.ones(2) + 1; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert not SLOW_TO_LOAD & set(done.stdout.split())


def test_the_order_is_seen_to_be_broken() -> None:
    assert not may_import("engine.layout", "engine.tensor.Tensor")
    assert not may_import("engine.ops.views", "engine.torch.nn")
    assert not may_import("app.panels.graph", "engine.worker.stepper.Stepper")
    assert may_import("app.session", "engine.worker.protocol.Step")
    assert may_import("engine.explain.rules", "engine.devices.caching_allocator")
