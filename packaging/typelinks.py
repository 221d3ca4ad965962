"""Lay out build/types/stridescope as installed, so that type checkers, which run no import hooks, find the rooms."""

from __future__ import annotations

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ("app", "engine", "resources")


def lay_links(shape: pathlib.Path = ROOT / "build" / "types" / "stridescope") -> None:
    """Make one link for each room under ``shape``; those that stand are kept."""
    shape.mkdir(parents=True, exist_ok=True)
    for room in ROOMS:
        if not (shape / room).exists():
            _link(shape / room, ROOT / room)


def _link(link: pathlib.Path, target: pathlib.Path) -> None:
    if sys.platform == "win32":  # a junction: links there need rights that most people lack
        import _winapi

        _winapi.CreateJunction(str(target), str(link))
    else:
        link.unlink(missing_ok=True)  # a dangling one, of a checkout that was moved
        link.symlink_to(target, target_is_directory=True)


if __name__ == "__main__":
    lay_links()
