"""Hooks on all modules at once, as PyTorch has them in ``torch.nn.modules.module``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.handle import RemovableHandle, registered
from stridescope.engine.torch.nn.modules.calling import Everywhere

Hook = Callable[..., Any]


class Registering:
    """The hooks that see every parameter, buffer and submodule that is registered, and may replace it."""

    parameters: OrderedDict[int, Hook] = OrderedDict()
    buffers: OrderedDict[int, Hook] = OrderedDict()
    modules: OrderedDict[int, Hook] = OrderedDict()


def replaced(hooks: OrderedDict[int, Hook], module: Any, name: str, value: Any) -> Any:
    """What is to be registered, after all hooks have seen it."""
    for hook in hooks.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, args)`` before every module's forward."""
    return registered(Everywhere.forward_pre, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after every module's forward; with ``always_call`` also when it failed."""
    handle = RemovableHandle(Everywhere.forward, extra_dict=[Everywhere.forward_with_kwargs, Everywhere.forward_always])
    Everywhere.forward[handle.id] = hook
    if with_kwargs:
        Everywhere.forward_with_kwargs[handle.id] = True
    if always_call:
        Everywhere.forward_always[handle.id] = True
    return handle


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before every module's backward."""
    return registered(Everywhere.backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` after every module's backward."""
    return registered(Everywhere.backward, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` whenever a parameter is registered; what it returns is taken instead."""
    return registered(Registering.parameters, hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` whenever a buffer is registered; what it returns is taken instead."""
    return registered(Registering.buffers, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` whenever a submodule is registered; its result is taken instead."""
    return registered(Registering.modules, hook)


HOOKS_ON_ALL = (
    register_module_forward_pre_hook, register_module_forward_hook, register_module_full_backward_pre_hook,
    register_module_full_backward_hook, register_module_parameter_registration_hook,
    register_module_buffer_registration_hook, register_module_module_registration_hook,
)  # fmt: skip
register_module_backward_hook = register_module_full_backward_hook
