"""Which files are the user's: the program's folder and what it imports from outside the libraries."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Sequence

from stridescope.engine.worker.hook import GIVEN, ROOM
from stridescope.engine.worker.tracebacks import is_ours

LIBRARIES = ("site-packages", "dist-packages")


class Belongs:
    """Says of a code's file whether it is the user's.

    ``also`` names packages that are to be stepped into like the user's own files, ``torch`` among them.
    """

    def __init__(self, program: str, folder: str, also: Sequence[str] = ()) -> None:
        self._program, self._starters = program, _files_running()
        self._also = tuple(inside + os.sep for name in also for inside in _folders(name))
        self._folder = os.path.realpath(folder) + os.sep
        paths = sysconfig.get_paths()
        roots = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        self._libraries = tuple(os.path.realpath(root) + os.sep for root in roots)

    def __call__(self, path: str) -> bool:
        """Say whether a file is the user's; code that stands in no file is not."""
        if path == self._program:
            return True
        if self._also and path.startswith(self._also):
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


def _files_running() -> set[str]:
    """Return the files of all calls that run now: what started the program, down to ``bin/stridescope``."""
    frame, files = sys._getframe(), set()
    while frame is not None:
        files.add(frame.f_code.co_filename)
        frame = frame.f_back  # type: ignore[assignment]
    return files


def _folders(name: str) -> list[str]:
    """Return where a package's files stand; none when there is no such package."""
    real = ROOM + name if name in GIVEN else name
    try:
        spec = importlib.util.find_spec(real)
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or ()) if spec is not None else []
