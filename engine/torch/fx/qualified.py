"""What a function is called in the text of a graph: its module and name, as PyTorch says them."""

from __future__ import annotations

import functools
from typing import Any

from stridescope.engine.dispatch.parser import Function
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.torch._ops import OpOverload, OpOverloadPacket

# PyTorch's C++ modules behind the public ones; their functions have the prefix in the name.
_BEHIND = {"torch.linalg": "torch._C._linalg", "torch.fft": "torch._C._fft", "torch.special": "torch._C._special"}
_OPERATOR = "_operator"


@functools.cache
def _names() -> dict[int, tuple[str, str]]:
    """By a function's identity: its module and the name that it has there."""
    import stridescope.engine.torch as torch
    import stridescope.engine.torch.functional as functional
    import stridescope.engine.torch.nn.functional as nn_functional

    found: dict[int, tuple[str, str]] = {}
    spaces: list[tuple[str, dict[str, Any]]] = [(name, FUNCTIONS[name]) for name in ("torch", "torch._C._nn")]
    spaces += [(_BEHIND.get(name, name), space) for name, space in FUNCTIONS.items()]
    for module, space in spaces:
        for function in space.values():
            found.setdefault(id(function), (module, function.__name__))
    for module, space in (("torch.nn.functional", vars(nn_functional)), ("torch.functional", vars(functional)),
                          ("torch", vars(torch))):  # fmt: skip
        for name, function in space.items():
            if callable(function) and not name.startswith("_") and not isinstance(function, type):
                found.setdefault(id(function), (module, name))
    found[id(nn_functional.one_hot)] = ("torch._C._nn", "one_hot")
    found[id(nn_functional.pad)] = ("torch.nn.functional", "pad")
    found[id(torch._C._set_grad_enabled)] = ("torch._C", "_set_grad_enabled")
    found[id(torch._assert)] = ("torch", "_assert")
    return found


def plain_name(function: Any) -> str:
    """The function's own name, that nodes are named by: ``linalg_norm`` for ``torch.linalg.norm``."""
    known = _names().get(id(function))
    return known[1] if known is not None else str(getattr(function, "__name__", type(function).__name__))


def module_of(function: Any) -> str:
    """The module that PyTorch has the function in."""
    known = _names().get(id(function))
    if known is not None:
        return known[0]
    return str(getattr(function, "__module__", None) or "torch").replace("stridescope.engine.torch", "torch")


def qualified_name(function: Any) -> str:
    """The name by which the code of a graph calls the function, such as ``torch.nn.functional.relu``."""
    if isinstance(function, (OpOverload, OpOverloadPacket)):
        return f"torch.ops.{function}"
    if module_of(function) == "builtins":
        return str(function.__name__)
    return f"{module_of(function)}.{plain_name(function)}"


def shown_target(target: Any) -> str:
    """A target in the text of a graph."""
    if isinstance(target, str):
        return target
    if module_of(target) == "builtins":
        return f"builtins.{target.__name__}"
    name = qualified_name(target)
    return f"operator.{name.removeprefix('_operator.')}" if name.startswith(f"{_OPERATOR}.") else name


def is_of_torch(value: Any) -> bool:
    """Whether the code of a graph reaches the value through the name ``torch``."""
    if isinstance(value, (OpOverload, OpOverloadPacket, Function)) or id(value) in _names():
        return True
    module = str(getattr(value, "__module__", None) or "")
    return module.replace("stridescope.engine.torch", "torch").split(".")[0] == "torch"
