"""What a script imports by name and gets from the engine: ``torch`` and everything under it.

``torch.nn`` and ``stridescope.engine.torch.nn`` are one module object. The script's own folder cannot hide it, just
as an installed PyTorch cannot.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder

GIVEN = ("torch", "torchvision", "torchviz")  # names that the engine gives, as stridescope.engine.NAME
ROOM = "stridescope.engine."
# Modules of other libraries that would hand our symbolic addresses to native code.
INSTEAD = {"safetensors.torch": ROOM + "torch._safetensors"}
HOOKED = "stridescope.engine.worker.hooked"  # what a fresh process of multiprocessing imports before the script


class GivenModules(MetaPathFinder):
    """Finds the engine's modules under PyTorch's names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a module that the engine gives, else None."""
        if (then := AFTERTHOUGHTS.get(fullname)) is not None:
            return _with_afterthought(fullname, path, then)
        if (ours := INSTEAD.get(fullname)) is not None:
            return ModuleSpec(fullname, SameModule(ours))
        root, _, inner = fullname.partition(".")
        if root not in GIVEN:
            return None
        if _exists(ROOM + fullname):
            return ModuleSpec(fullname, SameModule(ROOM + fullname), is_package=True)
        return _stand_in(fullname, inner) if root == "torch" and inner else None


class SameModule(Loader):
    """Loads a module by importing it under its real name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return the real module; its own spec is kept aside, since the import system is about to replace it."""
        __import__(self._name)
        module = sys.modules[self._name]
        self._spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Give the module its own spec back; it was executed when it was imported."""
        module.__spec__ = self._spec


class StandIn(Loader):
    """Loads what says that a module of PyTorch's is not here."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return the stand-in."""
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is left to do."""


class Afterthought(Loader):
    """Loads a module as its own loader would, then does one thing more."""

    def __init__(self, loader: Loader, then: Callable[[types.ModuleType], None]) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        """Leave the making to the module's own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        """Execute the module, then do the one thing more."""
        self._loader.exec_module(module)
        self._then(module)


def install() -> None:
    """Let ``import torch`` find the engine in this process and in those that multiprocessing starts from it."""
    if not any(isinstance(finder, GivenModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, GivenModules())
    for name, then in AFTERTHOUGHTS.items():
        if (module := sys.modules.get(name)) is not None:
            then(module)


def _stand_in(fullname: str, inner: str) -> ModuleSpec | None:
    from stridescope.engine.torch._absent import absent_module, is_absent  # a script without torch does without it

    return ModuleSpec(fullname, StandIn(absent_module(inner)), is_package=True) if is_absent(inner) else None


def _exists(name: str) -> bool:
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _with_afterthought(
    name: str, path: Sequence[str] | None, then: Callable[[types.ModuleType], None]
) -> ModuleSpec | None:
    spec = PathFinder.find_spec(name, path)
    if spec is not None and spec.loader is not None:
        spec.loader = Afterthought(spec.loader, then)
    return spec


def _spawned_import_too(spawn: types.ModuleType) -> None:
    """Let a spawned process install this hook before it unpickles anything of the script."""
    original, begin = spawn.get_command_line, f"import {HOOKED}; "

    def get_command_line(**what: object) -> list[str]:
        command: list[str] = original(**what)
        if "-c" in command and begin not in (code := command[command.index("-c") + 1]):
            command[command.index("-c") + 1] = begin + code
        return command

    spawn.get_command_line = get_command_line  # type: ignore[attr-defined]


def _served_import_too(forkserver: types.ModuleType) -> None:
    """Let the fork server install this hook; its children load the script themselves, instead of the server."""
    forkserver.set_forkserver_preload([HOOKED])


AFTERTHOUGHTS = {"multiprocessing.spawn": _spawned_import_too, "multiprocessing.forkserver": _served_import_too}
