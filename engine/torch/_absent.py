"""PyTorch's modules that are not here: they can be imported, and answer the questions by which scripts avoid them.

Anything else of them raises NotImplementedError by its name.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from stridescope.engine.torch._not_yet import NAMES, attribute_of


def _no() -> bool:
    return False


def _none() -> int:
    return 0


_NO_DEVICE: dict[str, Callable[[], Any]] = {"is_available": _no, "device_count": _none, "is_initialized": _no}
# What a module that is not here answers nevertheless.
MODULES: dict[str, dict[str, Any]] = {
    "mps": _NO_DEVICE,
    "mtia": _NO_DEVICE,
    "xpu": _NO_DEVICE,
    **{
        name: {}
        for name in (
            "_decomp", "_functorch", "_higher_order_ops", "_inductor", "_prims", "_refs", "_subclasses", "ao",
            "classes", "hub", "monitor", "nested", "package", "quantization", "sparse",
        )
    },
}  # fmt: skip


@functools.cache
def absent_module(name: str) -> types.ModuleType:
    """The stand-in for ``torch.NAME``, or for a module inside one, such as ``fx.proxy``."""
    full = f"torch.{name}"
    module = types.ModuleType(full, f"``{full}`` is not in Stridescope yet.")
    vars(module).update(MODULES.get(name, {}))
    vars(module)["__getattr__"] = attribute_of(full)
    vars(module)["__path__"] = []
    return module


def is_absent(name: str) -> bool:
    """Whether ``name`` (without ``torch.``) is one of these modules, lies in one, or is a listed part of ours."""
    if name.partition(".")[0] in MODULES:
        return True
    parent, _, leaf = name.rpartition(".")
    return leaf in NAMES.get(f"torch.{parent}", ()) or bool(parent) and is_absent(parent)
