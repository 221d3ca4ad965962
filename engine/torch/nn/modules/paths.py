"""Reaching into a module by dotted paths: the methods of Module that take one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.parameter import Parameter

if TYPE_CHECKING:
    from stridescope.engine.torch.nn.modules.module import Module


def _is_module(value: Any) -> bool:
    from stridescope.engine.torch.nn.modules.module import Module

    return isinstance(value, Module)


def _child(module: Module, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)


def get_submodule(self: Module, target: str) -> Module:
    """The submodule at a dotted path; raises AttributeError when there is none."""
    module = self
    for part in target.split(".") if target else ():
        module = _child(module, part)
        if not _is_module(module):
            raise AttributeError(f"`{part}` is not an nn.Module")
    return module


def set_submodule(self: Module, target: str, module: Module, strict: bool = False) -> None:
    """Put a module at a dotted path; with ``strict`` there must be one already."""
    if target == "":
        raise ValueError("Cannot set the submodule without a target name!")
    if not _is_module(module):
        raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
    path, _, name = target.rpartition(".")
    parent = get_submodule(self, path)
    if (strict or hasattr(parent, name)) and not _is_module(_child(parent, name)):
        raise AttributeError(f"`{name}` is not an nn.Module")
    setattr(parent, name, module)


def get_parameter(self: Module, target: str) -> Parameter:
    """The parameter at a dotted path; raises AttributeError when there is none."""
    path, _, name = target.rpartition(".")
    found = _child(get_submodule(self, path), name)
    if not isinstance(found, Parameter):
        raise AttributeError(f"`{name}` is not an nn.Parameter")
    return found


def get_buffer(self: Module, target: str) -> Tensor:
    """The buffer at a dotted path; raises AttributeError when there is none."""
    path, _, name = target.rpartition(".")
    module = get_submodule(self, path)
    found: Tensor = _child(module, name)
    if name not in module._buffers:
        raise AttributeError(f"`{name}` is not a buffer")
    return found


METHODS = {function.__name__: function for function in (get_submodule, set_submodule, get_parameter, get_buffer)}
