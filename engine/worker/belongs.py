"""Which files are the user's: the program's folder and what it imports from outside the libraries."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import sysconfig
import types
from collections.abc import Sequence

from stridescope.engine.worker.hook import GIVEN, ROOM
from stridescope.engine.worker.tracebacks import is_ours

LIBRARIES = ("site-packages", "dist-packages")
INNER = tuple(
    os.path.join("nn", *parts) for parts in (("parameter.py",), ("uninitialized.py",), ("modules", "told.py"))
)


class Belongs:
    """Says of code whether it is watched: that of the user's files is.

    ``also`` names packages that are to be stepped into as well, ``torch`` among them: of these the functions are
    watched, not what runs while a module of theirs is imported.
    """

    def __init__(self, program: str, folder: str, also: Sequence[str] = ()) -> None:
        self._program, self._starters = program, _files_running()
        self._also = tuple(place for name in also for place in places_of(name))
        self._folder = os.path.realpath(folder) + os.sep
        paths = sysconfig.get_paths()
        roots = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        self._libraries = tuple(os.path.realpath(root) + os.sep for root in roots)
        self._files: dict[str, bool] = {}
        self._open: dict[str, bool] = {}

    def __call__(self, code: types.CodeType) -> bool:
        """Say whether a code object is watched."""
        path = code.co_filename
        return self.concerns(path) and bool(self._files[path] or code.co_flags & inspect.CO_OPTIMIZED)

    def concerns(self, path: str) -> bool:
        """Say whether any code of a file is watched."""
        if path not in self._files:
            self._files[path] = self.owns(path)
            self._open[path] = path.startswith(self._also) and not (is_ours(path) and _is_inner(path))
        return self._files[path] or self._open[path]

    @property
    def steps_into(self) -> bool:
        """Say whether there are packages to be stepped into."""
        return bool(self._also)

    def owns(self, path: str) -> bool:
        """Say whether a file is the user's; code that stands in no file is not."""
        if path == self._program:
            return True
        if path.startswith("<") or is_ours(path) or path in self._starters:
            return False
        real = os.path.realpath(path)
        return self._is_beside(real) or not (self._is_library(real) or real.startswith(sys.base_prefix + os.sep))

    def _is_beside(self, real: str) -> bool:
        """Say whether the file stands under the program's folder, and not in an environment that stands there."""
        inside = real.removeprefix(self._folder)
        return inside != real and not any(name in inside.split(os.sep) for name in LIBRARIES)

    def _is_library(self, real: str) -> bool:
        return real.startswith(self._libraries) or any(name in real.split(os.sep) for name in LIBRARIES)


def _is_inner(path: str) -> bool:
    """Say whether one of our own files holds what is no Python in PyTorch: our bookkeeping, and tensors half made."""
    private = any(part.startswith("_") and part != "__init__.py" for part in path.split(os.sep))
    return private or path.endswith(INNER)


def _files_running() -> set[str]:
    """Return the files of all calls that run now: what started the program, down to ``bin/stridescope``."""
    frame, files = sys._getframe(), set()
    while frame is not None:
        files.add(frame.f_code.co_filename)
        frame = frame.f_back  # type: ignore[assignment]
    return files


def places_of(name: str) -> list[str]:
    """Return where a package's files stand, or a module's file; none when there is no such package."""
    try:
        spec = importlib.util.find_spec(ROOM + name if name in GIVEN else name)
    except (ImportError, ValueError):
        return []
    if spec is None or spec.submodule_search_locations is None:
        return [spec.origin] if spec is not None and spec.origin else []
    return [folder + os.sep for folder in spec.submodule_search_locations]
