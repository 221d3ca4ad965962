"""What ``import torchvision`` gives a script: transforms, datasets that are on disk, grids and a few models."""

from __future__ import annotations

import importlib
from typing import Any

from stridescope.engine.torch._not_yet import attribute_of

__version__ = "0.28.0+cpu"
SUBMODULES = ("datasets", "models", "transforms", "utils")
_missing = attribute_of("torchvision")


def __getattr__(name: str) -> Any:
    if name in SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _missing(name)
