"""What is run: a script and its arguments, as a file or as a module of its package; found by path, never imported."""

from __future__ import annotations

import dataclasses
import os
import shlex
from typing import Any, Self

from stridescope.app.text import tr

MAIN = "__main__.py"


@dataclasses.dataclass(frozen=True)
class Program:
    """A script, its arguments and its device; with ``module`` it runs as ``python -m module`` does in ``folder``."""

    path: str
    argv: tuple[str, ...] = ()
    device: str = "auto"
    until_step: int = 0  # a fork: where to stop first
    module: str = ""
    folder: str = ""

    @classmethod
    def of_module(cls, name: str, argv: tuple[str, ...], device: str) -> Self:
        """Return the program that ``python -m name`` would run here; raises ValueError where there is none."""
        folder = os.getcwd()
        stem = os.path.join(folder, *name.split("."))
        for path in (os.path.join(stem, MAIN), stem + ".py"):
            if os.path.isfile(path):
                return cls(path, argv, device, module=name, folder=folder)
        raise ValueError(tr("there is no module {name} in {folder}", name=name, folder=folder))

    @property
    def in_package(self) -> bool:
        """Whether imports that begin with a dot need it to be run as a module."""
        return os.path.isfile(os.path.join(os.path.dirname(self.path), "__init__.py"))

    @property
    def command(self) -> str:
        """What a person would type to run it."""
        return shlex.join(["python", *(["-m", self.module] if self.module else [self.path]), *self.argv])

    def start_options(self) -> dict[str, Any]:
        """Return it as fields of the protocol's ``Start``, without its path and arguments."""
        options = {"device": self.device, "until_step": self.until_step}
        return options | ({"module": True, "folder": self.folder} if self.module else {})

    def as_script(self) -> Self:
        """Return the same file run by its path."""
        return dataclasses.replace(self, module="", folder="")

    def as_module(self) -> Self:
        """Return the same file run by its dotted name, from the folder above its outermost package.

        Raises ValueError where a name on the way cannot be imported.
        """
        folder, file = os.path.split(self.path)
        parts = [] if file == MAIN else [os.path.splitext(file)[0]]
        while not parts or os.path.isfile(os.path.join(folder, "__init__.py")):
            folder, package = os.path.split(folder)
            parts.insert(0, package)
        if strange := next((part for part in parts if not part.isidentifier()), None):
            raise ValueError(tr("{name} is no name that a module can have", name=strange))
        return dataclasses.replace(self, module=".".join(parts), folder=folder)
