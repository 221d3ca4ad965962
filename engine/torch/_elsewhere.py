"""PyTorch's file names for what lies in other files here, so that ``from torch.… import …`` finds it."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def file_of(name: str, contents: dict[str, Any]) -> None:
    """Let a module of this name (``stridescope.engine.torch.…``) be imported; it holds the contents."""
    module = ModuleType(name, f"Names that PyTorch has in ``{name.removeprefix('stridescope.engine.')}``.")
    module.__spec__ = ModuleSpec(name, None)
    module.__dict__.update(contents)
    sys.modules[name] = module
